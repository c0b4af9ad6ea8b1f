package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// largeTable answers scans of a lock table that is made up: one row in a thousand is held.
type largeTable struct{ rows int }

// largePage is about what 1 MB has of such rows.
const largePage = 4000

func (l largeTable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if target := r.Header.Get("X-Amz-Target"); target != "DynamoDB_20120810.Scan" {
		http.Error(w, target, http.StatusBadRequest)
		return
	}
	var in struct {
		ExclusiveStartKey map[string]struct{ S string }
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	from := 0
	if last := in.ExclusiveStartKey["key"].S; last != "" {
		_, _ = fmt.Sscanf(last, "customer:%d", &from)
		from++
	}
	until := min(from+largePage, l.rows)
	var body bytes.Buffer
	body.WriteString(`{"Items":[`)
	for n := from; n < until; n++ {
		state := `"isReleased":{"S":"1"}`
		if n%1000 == 0 {
			state = `"unit":{"S":"AAAAAAAAAAAAAAAAAAAAAA"}`
		}
		comma := ","
		if n == from {
			comma = ""
		}
		fmt.Fprintf(&body, `%s{"key":{"S":"customer:%d"},%s,"fence":{"N":"%d"},"ownerName":{"S":"host-17.example 5b3d6bd8-40a9-4a5c-9bd3-f12345678901"},`+
			`"leaseDuration":{"S":"20000"},"recordVersionNumber":{"S":"unit.%d"},"acquiredAt":{"N":"1700000000000"},"expiresAt":{"N":"1800000000"}}`,
			comma, n, state, 1_700_000_000_000_000+n, n)
	}
	fmt.Fprintf(&body, `],"Count":%d,"ScannedCount":%[1]d,"ConsumedCapacity":{"TableName":"locks","CapacityUnits":128}`, until-from)
	if until < l.rows {
		fmt.Fprintf(&body, `,"LastEvaluatedKey":{"key":{"S":"customer:%d"}}`, until-1)
	}
	body.WriteString("}")
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	_, _ = w.Write(body.Bytes())
}

// A large table is listed in little memory, whatever is shown of it.
func TestLsOfALargeTable(t *testing.T) {
	rows := 1_000_000
	if testing.Short() {
		rows = 200_000
	}
	server := httptest.NewServer(largeTable{rows})
	defer server.Close()
	for flags, want := range map[string]int{"": rows / 1000, "--all": rows} {
		t.Run("ls "+flags, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), program, append([]string{"ls", "--table", "locks", "-o", "json"}, strings.Fields(flags)...)...)
			var lines lineCounter
			var errs bytes.Buffer
			cmd.Env, cmd.Stdout, cmd.Stderr = environ(server.URL), &lines, &errs
			require.NoError(t, cmd.Run(), errs.String())
			require.Equal(t, want, lines.n)
			// Linux counts what this process had when it started the other: up to 100 MB after
			// all other tests, with the race detector.
			took := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss // in KB
			t.Logf("%d rows took %d MB", rows, took>>10)
			require.Less(t, took, int64(200<<10))
		})
	}
}

// lineCounter counts lines, and keeps none.
type lineCounter struct{ n int }

func (l *lineCounter) Write(p []byte) (int, error) {
	l.n += bytes.Count(p, []byte("\n"))
	return len(p), nil
}
