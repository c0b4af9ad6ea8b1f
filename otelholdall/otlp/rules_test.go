package otlp_test

import (
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

const rulesFile = "../../docs/dashboards/alerts.yaml"

// Prometheus's own tool reads the rules, and they fire when they should and at no other time.
func TestAlerts(t *testing.T) {
	for _, args := range [][]string{{"check", "rules", rulesFile}, {"test", "rules", "testdata/alerts.yaml"}} {
		out, err := exec.CommandContext(t.Context(), "promtool", args...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	rules, err := os.ReadFile(rulesFile)
	require.NoError(t, err)
	cases, err := os.ReadFile("testdata/alerts.yaml")
	require.NoError(t, err)
	alerts := regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(string(rules), -1)
	require.NotEmpty(t, alerts)
	for _, alert := range alerts {
		require.Contains(t, string(cases), "alertname: "+alert[1]+"}", "a case in which it does not fire")
		require.Regexp(t, "alertname: "+alert[1]+`\n\s+exp_alerts:`, string(cases), "a case in which it fires")
	}
}
