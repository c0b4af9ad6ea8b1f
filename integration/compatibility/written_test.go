package compatibility

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
)

// attributes are those of the items of each of holdall's tables in a folder, with their types.
func (f folder) attributes(t *testing.T) map[string][]string {
	all := map[string]map[string]bool{}
	for _, scene := range f.scenes {
		for table, items := range scene.Tables {
			if table == "accounts" {
				continue
			}
			if all[table] == nil {
				all[table] = map[string]bool{}
			}
			for _, line := range items {
				var i map[string]map[string]json.RawMessage
				require.NoError(t, json.Unmarshal(line, &i))
				for name, value := range i {
					for kind := range value {
						all[table][name+" "+kind] = true
					}
				}
			}
		}
	}
	sorted := map[string][]string{}
	for table, names := range all {
		sorted[table] = slices.Sorted(maps.Keys(names))
	}
	return sorted
}

// Whatever attribute a version has written is still written, by its name: also those that nobody here reads
// back, such as the one by which DynamoDB deletes what is old, and others that earlier versions look at.
func TestWhatIsWritten(t *testing.T) {
	if *write != "" {
		t.Skip("a folder is written")
	}
	now := present(t).attributes(t)
	require.NotEmpty(t, now)
	dirs, err := filepath.Glob("testdata/v*")
	require.NoError(t, err)
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, sums)); err != nil {
			continue
		}
		f, err := read(dir)
		require.NoError(t, err)
		for table, names := range f.attributes(t) {
			require.Subset(t, now[table], names, "%s, table %q", f.version, table)
		}
	}
}

// And the tables delete by that attribute: those that are there were told so when they were made.
func TestWhatIsDeletedWhenOld(t *testing.T) {
	db := memdynamo.New(memdynamo.Config{})
	config := unitofwork.Config{Locks: lockset.Config{Table: "locks"}, Table: "units"}
	require.NoError(t, lockset.CreateTable(t.Context(), db, config.Locks))
	require.NoError(t, unitofwork.CreateTable(t.Context(), db, config))
	for _, table := range []string{"locks", "units"} {
		out, err := db.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &table})
		require.NoError(t, err)
		require.Equal(t, "expiresAt", aws.ToString(out.TimeToLiveDescription.AttributeName), table)
	}
}
