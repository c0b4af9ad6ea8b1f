package compatibility

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/stretchr/testify/require"
)

// fixture is a file of a version's folder: what a scene left. Its items are in DynamoDB's JSON.
type fixture struct {
	About  string                       `json:"about"`
	Names  map[string]string            `json:"names"`
	Tables map[string][]json.RawMessage `json:"tables"`
}

const (
	sums       = "SHA256SUMS"
	recordings = "recording.jsonl"
	compressed = 64 << 10 // what is larger is kept compressed
)

// folder is what there is of one version.
type folder struct {
	version   string
	scenes    map[string]fixture
	recording []byte
}

// keep is what the tables have now.
func (b *bed) keep(about string) (f fixture) {
	b.t.Helper()
	f = fixture{About: about, Names: maps.Clone(b.names), Tables: map[string][]json.RawMessage{}}
	for table, keys := range tables {
		items := b.items(table)
		slices.SortFunc(items, func(a, b item) int {
			of := func(i item) (s string) {
				for _, key := range keys {
					s += text(i[key]) + "\x00"
				}
				return s
			}
			return strings.Compare(of(a), of(b))
		})
		for _, i := range items {
			line, err := attributevalue.MarshalMapJSON(i)
			require.NoError(b.t, err)
			f.Tables[table] = append(f.Tables[table], sorted(b.t, line))
		}
	}
	return f
}

// sorted has the attributes of an item in one order.
func sorted(t *testing.T, line []byte) []byte {
	t.Helper()
	var attributes map[string]any
	require.NoError(t, json.Unmarshal(line, &attributes))
	line, err := json.Marshal(attributes)
	require.NoError(t, err)
	return line
}

// lines is a fixture as JSON, with an item a line.
func (f fixture) lines() ([]byte, error) {
	about, err := json.Marshal(f.About)
	if err != nil {
		return nil, err
	}
	names, err := json.Marshal(f.Names)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\n\"about\": %s,\n\"names\": %s,\n\"tables\": {", about, names)
	for n, table := range slices.Sorted(maps.Keys(f.Tables)) {
		if n > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, "\n%q: [\n%s\n]", table, bytes.Join(asBytes(f.Tables[table]), []byte(",\n")))
	}
	b.WriteString("\n}\n}\n")
	return b.Bytes(), nil
}

func asBytes(lines []json.RawMessage) (all [][]byte) {
	for _, line := range lines {
		all = append(all, line)
	}
	return all
}

// restore puts a fixture into the tables. change is what is done to each item of holdall's before.
func (b *bed) restore(f fixture, change func(item)) {
	b.t.Helper()
	b.names = maps.Clone(f.Names)
	for table, items := range f.Tables {
		for _, line := range items {
			i, err := attributevalue.UnmarshalMapJSON(line)
			require.NoError(b.t, err)
			if table != "accounts" {
				change(i)
			}
			b.put(table, i)
		}
	}
}

// write makes the folder of a version, which must not be there. Who was interrupted begins anew,
// once what there is has been removed by hand.
func (f folder) write(dir string) error {
	if err := os.Mkdir(dir, 0o750); err != nil {
		return fmt.Errorf("a folder that is there is never changed: %w", err)
	}
	files := map[string][]byte{recordings: f.recording}
	for name, scene := range f.scenes {
		body, err := scene.lines()
		if err != nil {
			return err
		}
		name += ".json"
		if len(body) > compressed {
			var packed bytes.Buffer
			z := gzip.NewWriter(&packed)
			if _, err := z.Write(body); err != nil {
				return err
			}
			if err := z.Close(); err != nil {
				return err
			}
			name, body = name+".gz", packed.Bytes()
		}
		files[name] = body
	}
	var list strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := os.WriteFile(filepath.Join(dir, name), files[name], 0o600); err != nil {
			return err
		}
		fmt.Fprintf(&list, "%s  %s\n", digest(files[name]), name)
	}
	return os.WriteFile(filepath.Join(dir, sums), []byte(list.String()), 0o600)
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// read reads the folder of a version, and finds it as it was written.
func read(dir string) (f folder, err error) {
	f = folder{version: filepath.Base(dir), scenes: map[string]fixture{}}
	list, err := os.ReadFile(filepath.Join(dir, sums))
	if err != nil {
		return f, err
	}
	said := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^([0-9a-f]{64})  (\S+)$`).FindAllStringSubmatch(string(list), -1) {
		said[m[2]] = m[1]
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return f, err
	}
	if len(entries) != len(said)+1 {
		return f, fmt.Errorf("%s names %d files, of %d that %s has beside it", sums, len(said), len(entries)-1, dir)
	}
	for name, sum := range said {
		body, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return f, err
		}
		if digest(body) != sum {
			return f, fmt.Errorf("%s of %s was changed: what a version has written stays as it was", name, f.version)
		}
		if name == recordings {
			f.recording = body
			continue
		}
		if f.scenes[strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".json")], err = parse(name, body); err != nil {
			return f, fmt.Errorf("%s of %s: %w", name, f.version, err)
		}
	}
	return f, nil
}

func parse(name string, body []byte) (f fixture, err error) {
	var r io.Reader = bytes.NewReader(body)
	if strings.HasSuffix(name, ".gz") {
		if r, err = gzip.NewReader(r); err != nil {
			return f, err
		}
	}
	lines := json.NewDecoder(r)
	lines.DisallowUnknownFields()
	err = lines.Decode(&f)
	return f, err
}

// present is what the present version leaves.
func present(t *testing.T) folder {
	t.Helper()
	f := folder{version: "present", scenes: map[string]fixture{}}
	for _, s := range scenes {
		inBed(t, begin, func(b *bed) {
			s.make(b)
			f.scenes[s.name] = b.keep(s.about)
		})
	}
	inBed(t, begin, func(b *bed) { f.recording = b.recorded() })
	return f
}
