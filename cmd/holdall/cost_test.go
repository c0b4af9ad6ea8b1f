package main

import (
	"encoding/json"
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

func TestCost(t *testing.T) {
	r := runWith(t, nil, "cost", "--keys", "2", "--depth", "2", "--writes", "2", "--reads", "2", "--id", "--rate", "10", "-o", "json",
		"--in-the-way", "0.5", "--price-write", "2", "--price-read", "0.5")
	require.Equal(t, exitDone, r.code, r)
	var got worked
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &got))
	require.Equal(t, 4, got.Rows)
	require.Equal(t, 0.5, got.Kinds[0].Share)
	require.Equal(t, 14.0, got.Kinds[0].WriteUnits, "as README has it")
	require.InEpsilon(t, 10*got.Average.ReadUnits, got.PerSecond.ReadUnits, 1e-9)
	require.InEpsilon(t, 730*3600*got.PerSecond.WriteUnits, got.PerMonth.WriteUnits, 1e-9)
	require.InEpsilon(t, got.PerMonth.WriteUnits/1e6*2, got.Money.Writes, 1e-9)
	require.InEpsilon(t, got.PerMonth.ReadUnits/1e6*0.5, got.Money.Reads, 1e-9)
	require.InEpsilon(t, got.Money.Writes+got.Money.Reads, got.Money.All, 1e-9)
	shares := 0.0
	for _, k := range got.Kinds {
		shares += k.Share
	}
	require.InEpsilon(t, 1, shares, 1e-9)
}

// The names of fields do not change; README has the others.
func TestTheJSONOfCost(t *testing.T) {
	r := runWith(t, nil, "cost", "-o", "json", "--locked", "--price-write", "1", "--price-read", "10")
	require.Contains(t, r.stdout, `,"money":{"writes":13.14,"reads":52.56,"all":65.7}}`)
}

// The lease says how often locks are renewed.
func TestCostKnowsTheLease(t *testing.T) {
	flags := []string{"cost", "--locked", "--hold", "1m", "--writes", "0", "--reads", "0"}
	for requests, r := range map[string]ran{
		"11": runWith(t, nil, flags...), // with nine renewals
		"5":  runWith(t, []string{"HOLDALL_LEASE=1m"}, flags...),
		"8":  runWith(t, nil, append(flags, "--lease", "30s")...),
	} {
		require.Regexp(t, `(?m)^nobody in the way +100% +`+requests+` `, r.stdout)
	}
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
