package locks

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/ordering"
)

// A renewal confirms a key only by an answer of its own: whatever is missing or odd
// about an answer is no confirmation, and no loss either.
func TestWhatARenewalProves(t *testing.T) {
	keys := []ordering.Key{"a", "b", "c"}
	answer := func(codes ...types.BatchStatementErrorCodeEnum) (answers []types.BatchStatementResponse) {
		for _, code := range codes {
			var err *types.BatchStatementError
			if code != "" {
				err = &types.BatchStatementError{Code: code}
			}
			answers = append(answers, types.BatchStatementResponse{Error: err})
		}
		return answers
	}
	for name, c := range map[string]struct {
		answers   []types.BatchStatementResponse
		confirmed []bool
		lost      []bool
	}{
		"all are renewed":        {answer("", "", ""), []bool{true, true, true}, []bool{false, false, false}},
		"one is another's":       {answer("", "ConditionalCheckFailed", ""), []bool{true, false, true}, []bool{false, true, false}},
		"one is busy":            {answer("TransactionConflict", "", "ThrottlingError"), []bool{false, true, false}, []bool{false, false, false}},
		"one may not be written": {answer("", "", "AccessDenied"), []bool{true, true, false}, []bool{false, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			for i, err := range renewed(keys, c.answers, nil) {
				require.Equal(t, c.confirmed[i], err == nil, "%v: %v", keys[i], err)
				if c.lost[i] {
					require.ErrorIs(t, err, heartbeat.ErrNotOurs)
				} else {
					require.NotErrorIs(t, err, heartbeat.ErrNotOurs)
				}
			}
		})
	}
}
