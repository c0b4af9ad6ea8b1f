package journal

import (
	"bytes"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/plans"
)

func TestTheFirstRowTellsTheSizeOfAJournal(t *testing.T) {
	plan, err := plans.New("a", "b/c")
	require.NoError(t, err)
	j := &Journal{Unit: "u", Locks: "locks", Token: 7, Fence: "_fence", Plan: plan, Writes: make([][]Write, len(plan))}
	j.Writes[1] = []Write{NewWrite("t", "r", types.TransactWriteItem{Delete: &types.Delete{Key: map[string]types.AttributeValue{"k": Number(1)}}})}
	var text bytes.Buffer
	require.NoError(t, j.Encode(&text))

	row := text.Bytes()[:bytes.IndexByte(text.Bytes(), '\n')+5] // cut anywhere after the first line
	size, err := SizeOf("u", row)
	require.NoError(t, err)
	require.Equal(t, Size{Locks: "locks", Token: 7, Steps: len(plan), Writes: 1}, size)

	_, err = SizeOf("another", row)
	require.ErrorContains(t, err, `unit "u"`)
	_, err = SizeOf("u", row[:10])
	require.Error(t, err)
}

func TestNotedAtIsForPeople(t *testing.T) {
	require.Equal(t, time.UnixMilli(1700000000123), NotedAt(map[string]types.AttributeValue{"at": Number(1700000000123)}))
	for _, v := range []types.AttributeValue{nil, Number(-1), Number(0), Number(latestNoted + 1), &types.AttributeValueMemberS{Value: "now"}} {
		require.Zero(t, NotedAt(map[string]types.AttributeValue{"at": v}))
	}
	require.Zero(t, NotedAt(nil))
}
