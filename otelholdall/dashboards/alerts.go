package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/holdall/holdall/otelholdall/internal/instruments"
	"github.com/holdall/holdall/trace"
)

// Labels that Prometheus gives to what it collects: which service, and which of its processes.
const (
	job      = attribute.Key("job")
	instance = attribute.Key("instance")
)

// alert is a rule that fires.
type alert struct {
	name     string
	when     query
	lasts    string // for how long it has to be so
	severity string
	summary  string
	means    string // for the page
	heading  string // where to go on, from the root of the repository
}

// of a metric within a quarter of an hour.
const lately = "15m"

var alerts = []alert{
	{
		name: "HoldallUnitStuck", severity: "critical",
		when:    sum(rise(selected(instruments.Stuck, ""), lately), job) + " > 0",
		summary: "A committed unit of {{ $labels.job }} cannot be applied: its keys stay locked until somebody mends it.",
		means:   "A committed unit was met that cannot be applied to its end. Its keys stay locked. It fires again whenever somebody meets the unit",
		heading: "docs/operations.md#a-unit-that-is-stuck",
	},
	{
		name: "HoldallUnitInDoubt", severity: "warning",
		when:    sum(rise(selected(instruments.Units, "_count", ended(trace.InDoubt)), lately), job) + " > 0",
		summary: "{{ $labels.job }} was told of {{ $value }} units that nobody knows whether they are committed.",
		means:   "A caller was told that it is not known whether its unit is committed: ask for the outcome, or repeat the unit under the same ID",
		heading: "README.md#in-doubt",
	},
	{
		name: "HoldallSetsLost", severity: "warning",
		when:    sum(rise(selected(instruments.Lost, ""), lately), job) + " > 3",
		summary: "{{ $labels.job }} lost {{ $value }} lock sets within " + lately + ".",
		means:   "More than three lock sets were lost within " + lately + ": the lease is too short, processes are starved of CPU, or DynamoDB does not answer",
		heading: "docs/operations.md#leases-and-clocks",
	},
	{
		name: "HoldallHeartbeatLate", severity: "warning",
		// A gauge stays for a while after its process has stopped to send it: with nothing held it says
		// nothing.
		when: "2 * " + selected(instruments.HeartbeatLeft, "") + " < on (job, instance) " + selected(instruments.HeartbeatAge, "") +
			" and on (job, instance) " + selected(instruments.SetsHeld, "") + " > 0",
		summary: "{{ $labels.instance }} of {{ $labels.job }} loses a lock set soon, unless a heartbeat gets through.",
		means:   "Less than a third of the lease is left until a set is lost: the reasons are those of `HoldallSetsLost`, in time",
		heading: "docs/operations.md#a-region-does-not-answer",
	},
	{
		name: "HoldallKeysHeldWhileWaiting", severity: "warning", lasts: "5m",
		when:    sum(selected(instruments.KeysHeldWaiting, ""), job, instance) + " > 0",
		summary: "{{ $labels.instance }} of {{ $labels.job }} holds {{ $value }} keys while it waits for others, all the time.",
		means:   "For five minutes a process has held keys while its units waited for more: others wait for these keys in turn. Somebody keeps the key that it waits for",
		heading: "docs/operations.md#many-wait-for-a-key",
	},
	{
		name: "HoldallFallBacks", severity: "warning", lasts: "15m",
		when: fallBackShare(lately, job) + " > 0.25 and " +
			sum(rate(selected(instruments.Units, "_count"), lately), job) + " > 0.1",
		summary: "{{ $value | humanizePercentage }} of the runs of units of {{ $labels.job }} came to nothing.",
		means:   "More than a quarter of the runs of units came to nothing, because somebody was in the way, for a quarter of an hour. Runs beside others of a group do not count",
		heading: "docs/operations.md#what-to-alarm-on",
	},
}

// fallBackShare is how many of the runs came to nothing, but for those that came along with others.
func fallBackShare(window string, by ...attribute.Key) query {
	fell := selected(instruments.Units, "_count", ended(trace.FellBack), apart())
	return sum(rate(fell, window), by...) + " / " + sum(rate(selected(instruments.Units, "_count", apart()), window), by...)
}

// rules are the alerts as a file of rules for Prometheus.
func rules() []byte {
	var b bytes.Buffer
	b.WriteString("# Made by make docs; see README.md.\ngroups:\n  - name: holdall\n    rules:\n")
	for _, a := range alerts {
		fmt.Fprintf(&b, "      - alert: %s\n        expr: %q\n", a.name, string(a.when))
		if a.lasts != "" {
			fmt.Fprintf(&b, "        for: %s\n", a.lasts)
		}
		fmt.Fprintf(&b, "        labels:\n          severity: %s\n", a.severity)
		fmt.Fprintf(&b, "        annotations:\n          summary: %q\n          runbook: %q\n", a.summary, a.heading)
	}
	return b.Bytes()
}

const (
	tableHead = "| alert | means | go to |\n|---|---|---|\n"
	tableEnd  = "\n\n"
)

// withAlerts is the page with a line for each alert.
func withAlerts(page []byte) ([]byte, error) {
	head, rest, found := strings.Cut(string(page), tableHead)
	_, rest, ends := strings.Cut(rest, tableEnd)
	if !found || !ends {
		return nil, errors.New("README.md has no table of alerts")
	}
	var b strings.Builder
	b.WriteString(head + tableHead)
	for _, a := range alerts {
		link := "../" + strings.TrimPrefix(a.heading, "docs/")
		if !strings.HasPrefix(a.heading, "docs/") {
			link = "../../" + a.heading
		}
		_, anchor, _ := strings.Cut(a.heading, "#")
		fmt.Fprintf(&b, "| `%s` | %s | [%s](%s) |\n", a.name, a.means, strings.ReplaceAll(anchor, "-", " "), link)
	}
	return []byte(strings.TrimSuffix(b.String(), "\n") + tableEnd + rest), nil
}
