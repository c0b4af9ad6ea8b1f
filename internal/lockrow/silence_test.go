package lockrow

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

// What is recorded counts for the sign of life that it names, and for no longer than makes sense.
func TestWhatARowSaysOfASilence(t *testing.T) {
	held := map[string]types.AttributeValue{
		AttrFence: Number(1), AttrUnit: Text("u"), AttrOwner: Text("o"), AttrLease: Text("20000"), AttrRVN: Text("r"),
	}
	free := map[string]types.AttributeValue{AttrFence: Number(1), AttrReleased: Text("1"), AttrRVN: Text("r")}
	queue := &types.AttributeValueMemberL{Value: []types.AttributeValue{Text("q")}}
	for name, c := range map[string]struct {
		row     map[string]types.AttributeValue
		of, ms  types.AttributeValue
		silence time.Duration
	}{
		"of the holder":          {held, Text("r"), Number(1500), 1500 * time.Millisecond},
		"of an earlier RVN":      {held, Text("q"), Number(1500), 0},
		"longer than two leases": {held, Text("r"), Number(1_000_000), 40 * time.Second},
		"for ever":               {held, Text("r"), &types.AttributeValueMemberN{Value: "1e30"}, 0},
		"for less than nothing":  {held, Text("r"), &types.AttributeValueMemberN{Value: "-5"}, 0},
		"of another type":        {held, Number(1), Number(1500), 0},
		"a text":                 {held, Text("r"), Text("1500"), 0},
		"half of it":             {held, Text("r"), nil, 0},
		"the other half":         {held, nil, Number(1500), 0},
		"of a row that is free":  {free, Text("r"), Number(1500), 0},
		"of the head of a queue": {plus(free, AttrQueue, queue), Text("r"), Number(1500), 0},
	} {
		row := c.row
		if c.of != nil {
			row = plus(row, AttrSilentOf, c.of)
		}
		if c.ms != nil {
			row = plus(row, AttrSilentFor, c.ms)
		}
		r, reason := Parse("k", row)
		require.Empty(t, reason, name)
		require.Equal(t, c.silence, r.Silence(), name)
	}
}

func plus(row map[string]types.AttributeValue, name string, v types.AttributeValue) map[string]types.AttributeValue {
	more := map[string]types.AttributeValue{name: v}
	for k, v := range row {
		more[k] = v
	}
	return more
}

func TestWhichSilenceIsWorthNoting(t *testing.T) {
	const whole = 64 * time.Second
	for name, c := range map[string]struct {
		known, recorded int // seconds
		alive, ended    bool
		worth           bool
	}{
		"an eighth":                       {8, 0, false, false, true},
		"less":                            {7, 0, false, false, false},
		"an eighth more than is recorded": {16, 8, false, false, true},
		"less than that":                  {15, 8, false, false, false},
		"at the end an eighth of that":    {1, 0, false, true, true},
		"nothing more than is recorded":   {8, 8, false, true, false},
		"of one that lives":               {31, 0, true, true, false},
		"of one that lived":               {32, 0, true, false, true},
	} {
		require.Equal(t, c.worth, IsWorthNoting(time.Duration(c.known)*time.Second, time.Duration(c.recorded)*time.Second, whole, c.alive, c.ended), name)
	}
}

// A process knows of the longer silence, its own or what is recorded, and not of both together.
func TestSightingsGoOnFromWhatIsRecorded(t *testing.T) {
	s := NewSightings(time.Hour)
	now := time.Now()
	r := Row{Key: "k", Exists: true, Unit: "u", RVN: "1", Lease: 20 * time.Second}
	at := now.Add
	require.Equal(t, at(0), s.See(r, at(0)))
	r.silentOf, r.silentFor = "1", 5*time.Second
	require.Equal(t, at(-4*time.Second), s.See(r, at(time.Second)))
	require.Equal(t, at(-4*time.Second), s.See(r, at(3*time.Second)), "what is recorded is not added once more")
	r.silentFor = 6 * time.Second
	require.Equal(t, at(-4*time.Second), s.See(r, at(3*time.Second)), "a shorter one changes nothing")

	silent, worth := s.WorthNoting(r, at(8*time.Second), false)
	require.Equal(t, 12*time.Second, silent)
	require.True(t, worth)
	r.RVN = "2"
	_, worth = s.WorthNoting(r, at(8*time.Second), false)
	require.False(t, worth, "it has shown another sign of life than this process has seen")
	require.Equal(t, at(9*time.Second), s.See(r, at(9*time.Second)))
	_, worth = s.WorthNoting(r, at(18*time.Second), true)
	require.False(t, worth, "it was seen alive")
	silent, worth = s.WorthNoting(r, at(19*time.Second), true)
	require.Equal(t, 10*time.Second, silent)
	require.True(t, worth)
	r.Unit, r.RVN = "v", "3"
	s.See(r, at(20*time.Second))
	_, worth = s.WorthNoting(r, at(23*time.Second), false)
	require.True(t, worth, "another has it now, who was not seen alive")
}
