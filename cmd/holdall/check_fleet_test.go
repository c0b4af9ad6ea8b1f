package main

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/lockset/inspect"
)

// Clocks and leases are in docs/operations.md.
func TestCheckFindsRowsOfOthers(t *testing.T) {
	engines.Each(t, func(t *testing.T, e *engines.Engine) {
		b := newBed(t, e)
		require.Equal(t, ran{0, unprotected(b.locks), ""}, b.run(t, "check", "--fleet", "--units", ""))
		b.put(t, b.locks, map[string]any{"key": "theirs", "unit": 7})
		var is struct {
			OK       bool
			Findings []finding
		}
		b.run(t, "check", "--fleet", "--units", "", "-o", "json").json(t, exitFound, &is)
		require.False(t, is.OK)
		require.Len(t, is.Findings, 2)
		require.True(t, is.Findings[0].Advice)
		require.False(t, is.Findings[1].Advice)
		require.Equal(t, b.locks, is.Findings[1].Table)
		require.Contains(t, is.Findings[1].Problem, `1 row is not of holdall's making, such as key "theirs"`)
		require.NotEmpty(t, is.Findings[1].Do)
	})
}

func TestSurveyLeavesWellAlone(t *testing.T) {
	now := time.Now()
	s := &survey{lease: time.Minute, now: now, leases: map[time.Duration]sample{}}
	s.see(inspect.Row{})
	s.see(inspect.Row{LastOwner: "x", LastHeld: now.Add(clockOff)})
	s.see(inspect.Row{Holder: &inspect.Holder{Lease: time.Minute, Since: now.Add(-time.Hour)}})
	require.Empty(t, s.findings("locks"))
	s.see(inspect.Row{LastOwner: "y", LastHeld: now.Add(clockOff + 2*time.Second)})
	s.see(inspect.Row{LastOwner: "z", LastHeld: now.Add(clockOff + time.Second)})
	s.see(inspect.Row{Holder: &inspect.Holder{Owner: "o", Lease: time.Second}})
	s.see(inspect.Row{Holder: &inspect.Holder{Owner: "o", Lease: time.Second}})
	found := s.findings("locks")
	require.Equal(t, `the clock of owner "y" is 1m2s ahead of this host's, or was`, found[0].Problem)
	require.Equal(t, `2 rows are held with a lease of 1s, by owner "o" for one, and this command was told 1m0s`, found[1].Problem)
}

// What no engine of the tests shows.
func TestFindingsOfDescriptions(t *testing.T) {
	protected := &types.TableDescription{DeletionProtectionEnabled: aws.Bool(true)}
	require.Empty(t, ofDescription("locks", protected))
	protected.Replicas = []types.ReplicaDescription{{RegionName: aws.String("eu-west-2")}, {RegionName: aws.String("us-east-1")}}
	found := ofDescription("locks", protected)
	require.Equal(t, `advice: table "locks": has replicas in eu-west-2, us-east-1, and each Region checks conditions by itself: `+
		`let all processes use one and the same Region`, found[0].String())
	protected.MultiRegionConsistency = types.MultiRegionConsistencyStrong
	found = ofDescription("locks", protected)
	require.Len(t, found, 1)
	require.False(t, found[0].Advice)

	past := func(status types.PointInTimeRecoveryStatus) []finding {
		return ofBackups("units", &types.ContinuousBackupsDescription{PointInTimeRecoveryDescription: &types.PointInTimeRecoveryDescription{PointInTimeRecoveryStatus: status}})
	}
	require.Empty(t, past(types.PointInTimeRecoveryStatusEnabled))
	require.True(t, past(types.PointInTimeRecoveryStatusDisabled)[0].Advice)
	require.Empty(t, ofBackups("units", nil))

	require.Empty(t, ofThrottling("locks", 0, 18))
	require.Contains(t, ofThrottling("locks", 3, 18)[0].Problem, "3 of 18 requests")
}
