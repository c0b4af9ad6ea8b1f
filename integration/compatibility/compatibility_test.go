package compatibility

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/lockset/inspect"
)

var write = flag.String("write", "", "write the folder of this version, such as v0.1.0, instead of reading those that there are")

var scenes = slices.Concat(ofLocks, ofUnits, ofJournals)

// first is the version whose tables and recordings all later ones must read.
const first = "v0.1.0"

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(m.Run())
}

// What each version has left is understood and dealt with; and so it is with attributes that
// a version has added since.
func TestWhatEachVersionLeft(t *testing.T) {
	if *write != "" {
		require.Regexp(t, regexp.MustCompile(`^v\d+\.\d+\.\d+$`), *write, "a version")
		require.NoError(t, present(t).write(filepath.Join("testdata", *write)))
		return
	}
	dirs, err := filepath.Glob("testdata/v*")
	require.NoError(t, err)
	require.Contains(t, dirs, filepath.Join("testdata", first))
	folders := []folder{present(t)}
	require.Len(t, folders[0].scenes, len(scenes), "two scenes have one name")
	for _, dir := range dirs {
		f, err := read(dir)
		require.NoError(t, err)
		folders = append(folders, f)
	}
	for _, f := range folders {
		t.Run(f.version, func(t *testing.T) {
			require.NotEmpty(t, f.scenes)
			if f.recording != nil {
				t.Run("recording", func(t *testing.T) { readRecording(t, f.recording) })
			}
			for name, left := range f.scenes {
				at := slices.IndexFunc(scenes, func(s scene) bool { return s.name == name })
				require.GreaterOrEqual(t, at, 0, "nobody knows the scene %q any more", name)
				t.Run(name, func(t *testing.T) { met(t, scenes[at], left) })
			}
		})
	}
}

// met has others meet what a scene left.
func met(t *testing.T, s scene, left fixture) {
	require.NotEmpty(t, s.met)
	for how, change := range map[string]func(item){
		"as it is": func(item) {},
		"with an attribute of a later version": func(i item) {
			i["ofALaterVersion"] = &types.AttributeValueMemberM{Value: item{"n": &types.AttributeValueMemberN{Value: "1"}}}
		},
	} {
		meets := func(name string, test func(*bed)) {
			t.Run(how+"/"+name, func(t *testing.T) {
				inBed(t, begin.Add(time.Hour), func(b *bed) {
					b.restore(left, change)
					test(b)
				})
			})
		}
		meets("all rows", func(b *bed) {
			n := 0
			for row, err := range b.inspector().List(b.t.Context(), inspect.ListOptions{}) {
				require.NoError(b.t, err)
				require.Empty(b.t, row.Damage, row.Key)
				n++
			}
			require.LessOrEqual(b.t, n, len(left.Tables["locks"]))
		})
		for name, test := range s.met {
			meets(name, test)
		}
	}
}

// A folder that is there is not written again, and one that was changed is noticed.
func TestFolders(t *testing.T) {
	f := folder{scenes: map[string]fixture{"small": {About: "a scene", Names: map[string]string{"a": "b"}, Tables: map[string][]json.RawMessage{}}}, recording: []byte("{}\n")}
	f.scenes["large"] = fixture{Names: map[string]string{}, Tables: map[string][]json.RawMessage{
		"locks": {[]byte(`{"a":{"S":"b"}}`), []byte(`{"c":{"S":"` + strings.Repeat("x", 2*compressed) + `"}}`)},
	}}
	dir := filepath.Join(t.TempDir(), "v0.0.1")
	require.NoError(t, f.write(dir))
	again, err := read(dir)
	require.NoError(t, err)
	require.True(t, reflect.DeepEqual(f.scenes, again.scenes)) // what differs would be too long to be shown
	require.Equal(t, f.recording, again.recording)
	require.ErrorIs(t, f.write(dir), os.ErrExist)

	small := filepath.Join(dir, "small.json")
	require.NoError(t, os.WriteFile(small, []byte("{}"), 0o600))
	_, err = read(dir)
	require.ErrorContains(t, err, "was changed")
	require.NoError(t, os.Remove(small))
	_, err = read(dir)
	require.ErrorContains(t, err, "names 3 files")
}
