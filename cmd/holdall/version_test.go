package main

import (
	"encoding/json"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVersion(t *testing.T) {
	info := &debug.BuildInfo{Main: debug.Module{Version: "v0.1.0"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "cf52898"}, {Key: "vcs.time", Value: "2026-11-24T16:06:54Z"}, {Key: "vcs.modified", Value: "true"},
	}}
	on := runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH
	require.Equal(t, "holdall v0.1.0, commit cf52898, "+on, buildOf(info).String())
	require.True(t, buildOf(info).Modified)
	require.Equal(t, "2026-11-24T16:06:54Z", buildOf(info).Time)
	require.Equal(t, "holdall unknown, commit unknown, "+on, buildOf(nil).String())
	require.Equal(t, "devel", buildOf(&debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}).Version)
}

// It needs no table and no account. README shows its text.
func TestVersionOfThisProgram(t *testing.T) {
	r := runWith(t, nil, "version", "-o", "json")
	require.Equal(t, ran{exitDone, r.stdout, ""}, r)
	var b map[string]any
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &b))
	require.Equal(t, runtime.Version(), b["go"])
	require.Equal(t, runtime.GOOS+"/"+runtime.GOARCH, b["platform"])
	for _, field := range []string{"version", "revision", "time", "modified"} {
		require.Contains(t, b, field)
	}
}
