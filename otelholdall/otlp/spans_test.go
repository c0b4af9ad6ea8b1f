package otlp_test

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// span is one as the collector has written it.
type span struct {
	TraceID, SpanID, ParentSpanID, Name string
	StartTimeUnixNano                   int64 `json:",string"`
	EndTimeUnixNano                     int64 `json:",string"`
	Attributes                          []struct {
		Key   string
		Value struct{ StringValue string }
	}
	Links []struct{ TraceID, SpanID string }

	parent   *span
	children []*span
}

// String is for messages, which would show whole traces else.
func (s *span) String() string { return s.Name + " " + s.TraceID + " " + s.SpanID }

func (s *span) attribute(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.StringValue
		}
	}
	return ""
}

func (s *span) has(child string) bool {
	return slices.ContainsFunc(s.children, func(c *span) bool { return c.Name == child })
}

// written are all spans in the collector's file, by their IDs, which are those of their traces, too.
func written(t *testing.T, path string) map[string]*span {
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	all := map[string]*span{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var exported struct {
			ResourceSpans []struct {
				ScopeSpans []struct{ Spans []*span }
			}
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &exported), lines.Text())
		for _, resource := range exported.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				for _, s := range scope.Spans {
					require.Nil(t, all[s.TraceID+s.SpanID], "a span that is written twice")
					all[s.TraceID+s.SpanID] = s
				}
			}
		}
	}
	require.NoError(t, lines.Err())
	for _, s := range all {
		if s.ParentSpanID != "" {
			s.parent = all[s.TraceID+s.ParentSpanID]
			require.NotNil(t, s.parent, "%s: what it is below is missing", s.Name)
			s.parent.children = append(s.parent.children, s)
		}
	}
	return all
}

// below says below which spans each may be; an empty name is for one that begins a trace.
var below = map[string][]string{
	"holdall.unit":     {""},
	"holdall.acquire":  {"holdall.unit", ""},
	"holdall.wait":     {"holdall.acquire", "holdall.read", "holdall.unit"},
	"holdall.function": {"holdall.unit"},
	"holdall.read":     {"holdall.function"},
	"holdall.commit":   {"holdall.unit"},
	"holdall.lost":     {"holdall.unit", ""},
}

// wholeTraces: what belongs to a unit is below its span, and what it is linked to is there.
func wholeTraces(t *testing.T, all map[string]*span, counted map[string]int) {
	names := map[string]int{}
	linked, alone := 0, 0
	for _, s := range all {
		names[s.Name]++
		parent := ""
		if s.parent != nil {
			parent = s.parent.Name
			require.GreaterOrEqual(t, s.StartTimeUnixNano, s.parent.StartTimeUnixNano, "%s below %s", s.Name, parent)
		}
		require.LessOrEqual(t, s.StartTimeUnixNano, s.EndTimeUnixNano, s.Name)
		if strings.HasPrefix(s.Name, "DynamoDB.") {
			require.Equal(t, "aws.dynamodb", s.attribute("db.system.name"))
			if parent == "" && len(s.Links) == 0 {
				alone++
			}
		} else {
			require.Contains(t, below[s.Name], parent, s.Name)
		}
		for _, l := range s.Links {
			to := all[l.TraceID+l.SpanID]
			require.NotNil(t, to, "%s is linked to a span that is missing", s.Name)
			if s.Name == "holdall.wait" {
				linked++
				require.Equal(t, s.attribute("holdall.holder"), to.attribute("holdall.unit"), "a wait is linked to who is in the way")
			}
		}
	}
	require.Positive(t, linked, "nobody waited for a unit of the same process")
	for name, n := range counted {
		if strings.HasPrefix(name, "DynamoDB.") || below[name] != nil {
			require.Equal(t, n, names[name], "spans %s", name)
			delete(names, name)
		}
	}
	require.Empty(t, names, "spans of what nobody has told of")
	require.Equal(t, counted[requestAlone], alone, "requests that are below nothing")
}

// wholeUnits: a unit that was committed has below it what that takes, by its way.
func wholeUnits(t *testing.T, all map[string]*span) {
	ways := map[string]int{}
	for _, s := range all {
		if s.Name != "holdall.unit" || s.attribute("holdall.outcome") != "committed" {
			continue
		}
		way := s.attribute("holdall.way")
		ways[way]++
		require.True(t, s.has("holdall.function"), way)
		switch way {
		case "without locks":
			require.True(t, s.has("holdall.commit"), way)
			require.False(t, s.has("holdall.acquire"), way)
		case "under locks":
			require.True(t, s.has("holdall.acquire") && s.has("holdall.commit"), way)
		case "together with another":
			require.NotEmpty(t, s.attribute("holdall.leader"))
		}
		for _, c := range s.children {
			if c.Name == "holdall.commit" && way != "together with another" {
				require.True(t, slices.ContainsFunc(c.children, func(r *span) bool { return strings.HasPrefix(r.Name, "DynamoDB.") }), "a commit without a request")
			}
		}
	}
	for _, way := range []string{"without locks", "under locks", "together with another"} {
		require.Positive(t, ways[way], "no unit was committed %s", way)
	}
}
