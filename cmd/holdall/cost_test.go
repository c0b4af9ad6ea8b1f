package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// The guide about costs shows what the command prints.
func TestTheGuideShowsWhatCostPrints(t *testing.T) {
	page, err := os.ReadFile("../../docs/guides/cost/README.md")
	require.NoError(t, err)
	same := func(text string) string { return text }
	asShown(t, string(page), nil, same, same)
}

// The names of fields do not change; README has the others. The lease says how often locks are renewed.
func TestTheJSONOfCost(t *testing.T) {
	r := runWith(t, []string{"HOLDALL_LEASE=1m"},
		"cost", "-o", "json", "--locked", "--hold", "1m", "--price-write", "1", "--price-read", "10")
	require.Contains(t, r.stdout, `{"name":"nobody in the way","share":1,"requests":6,`)
	require.Contains(t, r.stdout, `,"money":{"writes":21.024,"reads":52.56,"all":73.584}}`)
}

func TestTheSizeOfARecord(t *testing.T) {
	require.Equal(t, runWith(t, nil, "cost", "--record-size", "400KB").stdout, runWith(t, nil, "cost", "--record-size", "409600").stdout)
}

func TestShort(t *testing.T) {
	for want, n := range map[string]float64{
		"0": 0, "0.012": 0.01234, "1": 1, "3.142": 3.14159, "111.1": 111.10000000000001, "12345": 12345.4, "100": 100,
		"1.5 million": 1.5e6, "2044 million": 2.0440584e9, "10.51 trillion": 1.0512e13, "1000": 999.96, "<0.001": 1e-9,
	} {
		require.Equal(t, want, short(n))
	}
	require.Equal(t, []string{"100%", "0.001%", "<0.001%"}, []string{percent(1), percent(1e-5), percent(1e-9)})
}
