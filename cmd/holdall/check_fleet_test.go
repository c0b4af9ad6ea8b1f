package main

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
)

func TestCheckOfAFleet(t *testing.T) {
	engines.Each(t, func(t *testing.T, e *engines.Engine) {
		b := newBed(t, e)
		require.Equal(t, ran{0, unprotected(b.locks), ""}, b.run(t, "check", "--fleet", "--units", ""))
		var sets []*lockset.Set
		for name, ahead := range map[string]time.Duration{"early": time.Hour, "late": -time.Hour} {
			locks, err := lockset.New(b.Client, lockset.Config{
				Table: b.locks, Lease: time.Minute, Owner: name, Now: func() time.Time { return time.Now().Add(ahead) },
			})
			require.NoError(t, err)
			set, err := locks.Acquire(t.Context(), []ordering.Key{ordering.Join(name)})
			require.NoError(t, err)
			sets = append(sets, set)
		}
		b.put(t, b.locks, map[string]any{"key": "theirs", "unit": 7})

		var is struct {
			OK       bool
			Findings []finding
		}
		b.run(t, "check", "--fleet", "--units", "", "-o", "json").json(t, exitFound, &is)
		require.False(t, is.OK)
		require.Len(t, is.Findings, 4)
		require.Contains(t, is.Findings[1].Problem, `1 row is not of holdall's making, such as key "theirs"`)
		require.Regexp(t, `^the clock of owner "early" is (1h0m0s|59m5\d\.?\d*s) ahead`, is.Findings[2].Problem)
		require.Regexp(t, `^2 rows are held with a lease of 1m0s, by owner "(early|late)" for one, and this command was told 20s$`, is.Findings[3].Problem)
		for _, f := range is.Findings {
			require.Equal(t, b.locks, f.Table)
			require.NotEmpty(t, f.Do)
		}
		require.False(t, is.Findings[1].Advice || is.Findings[2].Advice)
		require.True(t, is.Findings[0].Advice && is.Findings[3].Advice)
		for _, set := range sets {
			require.NoError(t, set.Release(t.Context()))
		}
	})
}

func TestSurveyLeavesWellAlone(t *testing.T) {
	now := time.Now()
	s := newSurvey(time.Minute, now)
	s.see(inspect.Row{})
	s.see(inspect.Row{LastOwner: "x", LastHeld: now.Add(clockOff)})
	s.see(inspect.Row{Holder: &inspect.Holder{Lease: time.Minute, Since: now.Add(-time.Hour)}})
	require.Empty(t, s.findings("locks"))
	s.see(inspect.Row{LastOwner: "y", LastHeld: now.Add(clockOff + 2*time.Second)})
	s.see(inspect.Row{LastOwner: "z", LastHeld: now.Add(clockOff + time.Second)})
	require.Equal(t, `the clock of owner "y" is 1m2s ahead of this host's, or was`, s.findings("locks")[0].Problem)
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
