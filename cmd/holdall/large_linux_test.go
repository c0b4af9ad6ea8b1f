package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// largeTable answers for a lock table that is made up: one row in so many is held, with a lease of a
// second, and all but one in ten of these by somebody alive.
type largeTable struct {
	rows, heldEach int

	mu                    sync.Mutex
	listed, looked, freed map[int]bool // of those that are held
	most                  int          // listed and not looked at yet
}

func newLargeTable(rows, heldEach int) *largeTable {
	return &largeTable{rows: rows, heldEach: heldEach, listed: map[int]bool{}, looked: map[int]bool{}, freed: map[int]bool{}}
}

// largePage is about what 1 MB has of such rows.
const largePage = 4000

// largeKey is the key of a row, as JSON.
type largeKey struct{ Key struct{ S string } }

func (k largeKey) number() (n int) {
	_, _ = fmt.Sscanf(k.Key.S, "customer:%d", &n)
	return n
}

func (l *largeTable) held(n int) bool { return n%l.heldEach == 0 && !l.freed[n] }
func (l *largeTable) dead(n int) bool { return n/l.heldEach%10 == 0 }

func (l *largeTable) write(body *bytes.Buffer, n int) {
	state, sign := `"isReleased":{"S":"1"}`, int64(n)
	if l.held(n) {
		state = `"unit":{"S":"AAAAAAAAAAAAAAAAAAAAAA"}`
		if !l.dead(n) {
			sign = time.Now().UnixMilli() / 100
		}
	}
	fmt.Fprintf(body, `{"key":{"S":"customer:%d"},%s,"fence":{"N":"%d"},"ownerName":{"S":"host-17.example 5b3d6bd8-40a9-4a5c-9bd3-f12345678901"},`+
		`"leaseDuration":{"S":"1000"},"recordVersionNumber":{"S":"unit.%d"},"acquiredAt":{"N":"1700000000000"},"expiresAt":{"N":"1800000000"}}`,
		n, state, 1_700_000_000_000_000+n, sign)
}

func (l *largeTable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		ExclusiveStartKey largeKey
		TransactItems     []struct{ Get struct{ Key largeKey } }
		Key               largeKey
		UpdateExpression  string
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var body bytes.Buffer
	l.mu.Lock()
	switch target := r.Header.Get("X-Amz-Target"); target {
	case "DynamoDB_20120810.Scan":
		from := 0
		if in.ExclusiveStartKey.Key.S != "" {
			from = in.ExclusiveStartKey.number() + 1
		}
		l.scan(&body, from)
	case "DynamoDB_20120810.TransactGetItems":
		sep := `{"Responses":[{"Item":`
		for _, get := range in.TransactItems {
			n := get.Get.Key.number()
			l.looked[n] = true
			body.WriteString(sep)
			l.write(&body, n)
			sep = `},{"Item":`
		}
		body.WriteString("}]}")
	case "DynamoDB_20120810.UpdateItem": // frees a row, or notes its silence, which is not shown
		if strings.Contains(in.UpdateExpression, "#isReleased") {
			l.freed[in.Key.number()] = true
		}
		body.WriteString("{}")
	default:
		l.mu.Unlock()
		http.Error(w, target, http.StatusBadRequest)
		return
	}
	l.mu.Unlock()
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	_, _ = w.Write(body.Bytes())
}

func (l *largeTable) scan(body *bytes.Buffer, from int) {
	until := min(from+largePage, l.rows)
	sep := `{"Items":[`
	for n := from; n < until; n++ {
		body.WriteString(sep)
		l.write(body, n)
		sep = ","
		if l.held(n) {
			l.listed[n] = true
		}
	}
	l.most = max(l.most, len(l.listed)-len(l.looked))
	fmt.Fprintf(body, `],"Count":%d,"ScannedCount":%[1]d,"ConsumedCapacity":{"TableName":"locks","CapacityUnits":128}`, until-from)
	if until < l.rows {
		fmt.Fprintf(body, `,"LastEvaluatedKey":{"key":{"S":"customer:%d"}}`, until-1)
	}
	body.WriteString("}")
}

// inLittleMemory runs the command on a large table, of which it has a page and a part in memory, and
// returns its lines.
func (l *largeTable) inLittleMemory(t *testing.T, args ...string) (lines lineCounter) {
	t.Helper()
	server := httptest.NewServer(l)
	defer server.Close()
	cmd := exec.CommandContext(t.Context(), program, append(args, "--table", "locks", "-o", "json")...)
	var errs bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = environ(server.URL), &lines, &errs
	require.NoError(t, cmd.Start())
	ended, most := make(chan struct{}), make(chan int64)
	go func() { most <- mostResident(cmd.Process.Pid, ended) }()
	err := cmd.Wait()
	close(ended)
	took := <-most
	require.NoError(t, err, errs.String())
	require.Positive(t, took)
	t.Logf("%d rows took %d MB", l.rows, took>>10)
	_, memory := largeRows()
	require.Less(t, took, memory)
	return lines
}

// mostResident is how much memory a process had at most, in KB, as of a moment before it ended. What
// Linux says of it afterwards counts the process that started it, too.
func mostResident(pid int, ended <-chan struct{}) (most int64) {
	for {
		select {
		case <-ended:
			return most
		case <-time.After(5 * time.Millisecond):
		}
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if _, peak, is := strings.Cut(string(status), "VmHWM:"); is {
			_, _ = fmt.Sscan(peak, &most)
		}
	}
}

// largeRows returns how many rows a large table has, and the memory in KB that the command may use.
func largeRows() (rows int, memory int64) {
	if testing.Short() {
		return 120_000, 100 << 10
	}
	return 1_000_000, 200 << 10
}

// A large table is listed in little memory, whatever is shown of it.
func TestLsOfALargeTable(t *testing.T) {
	rows, _ := largeRows()
	for flags, want := range map[string]int{"": rows / 1000, "--all": rows} {
		t.Run("ls "+flags, func(t *testing.T) {
			lines := newLargeTable(rows, 1000).inLittleMemory(t, append([]string{"ls"}, strings.Fields(flags)...)...)
			require.Equal(t, want, lines.n)
		})
	}
}

// So is it swept: of the keys that somebody has, a part is watched at a time.
func TestSweepOfALargeTable(t *testing.T) {
	rows, _ := largeRows()
	l := newLargeTable(rows, 20)
	held := l.rows / l.heldEach
	require.Greater(t, held, mostRows, "or all are watched at a time")
	lines := l.inLittleMemory(t, "sweep")
	require.Equal(t, held/10, lines.n)
	require.Len(t, l.freed, held/10)
	require.Len(t, l.looked, held)
	require.LessOrEqual(t, l.most, mostRows+largePage/l.heldEach)
}

// lineCounter counts lines, and keeps none.
type lineCounter struct{ n int }

func (l *lineCounter) Write(p []byte) (int, error) {
	l.n += bytes.Count(p, []byte("\n"))
	return len(p), nil
}
