package requests_test

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/requests"
)

func coded(code, message string) error { return &smithy.GenericAPIError{Code: code, Message: message} }

// What an operator reads names the table, and every reason once.
func TestATableErrorSaysWhy(t *testing.T) {
	reason := func(message *string) types.CancellationReason {
		return types.CancellationReason{Code: aws.String("ValidationError"), Message: message}
	}
	canceled := &types.TransactionCanceledException{
		Message: aws.String("cancelled, see the reasons"),
		CancellationReasons: []types.CancellationReason{
			{Code: aws.String("None")}, reason(aws.String("too deep")), reason(aws.String("the reasons")), reason(nil),
		},
	}
	for name, c := range map[string]struct {
		err    error
		tables []string
		says   string
	}{
		"the reasons of a transaction": {canceled, []string{"a"}, `table "a": Op: ValidationError: too deep; ValidationError: the reasons; ValidationError`},
		"a table that is not there":    {coded("ResourceNotFoundException", "m"), []string{"a"}, `table "a": Op: does not exist (ResourceNotFoundException: m): create it, or correct its name, the Region or the account`},
		"a permission":                 {coded("AccessDeniedException", "m"), []string{"a"}, "table \"a\": Op: may not be accessed (AccessDeniedException: m): allow what `holdall init --print iam` prints"},
		"anything else":                {errors.New("x"), []string{"a", "b"}, `one of the tables ["a" "b"]: Op: x`},
	} {
		t.Run(name, func(t *testing.T) {
			err := &requests.TableError{Op: "Op", Tables: c.tables, Err: c.err}
			require.EqualError(t, err, c.says)
			require.ErrorIs(t, err, c.err)
		})
	}
}

// Of one statement of a batch it is known that it was done, or that it never was
// because its condition did not hold; all else is as good as no answer.
func TestTheKindOfAStatement(t *testing.T) {
	require.Equal(t, requests.Done, requests.KindOfStatement(nil))
	for _, code := range types.BatchStatementErrorCodeEnum("").Values() {
		want := requests.NoAnswer
		if code == types.BatchStatementErrorCodeEnumConditionalCheckFailed {
			want = requests.Refused
		}
		require.Equal(t, want, requests.KindOfStatement(&types.BatchStatementError{Code: code}), code)
	}
}

// DynamoDB says "None" where nothing is wrong; engines may leave it out.
func TestTheCodeOfAReason(t *testing.T) {
	for want, code := range map[string]*string{
		requests.ReasonNone: nil, requests.ReasonCondition: aws.String(requests.ReasonCondition), "Any": aws.String("Any"),
	} {
		require.Equal(t, want, requests.Code(types.CancellationReason{Code: code}))
	}
	require.Equal(t, "None", requests.Code(types.CancellationReason{Code: aws.String("")}))
	require.Equal(t, "None", requests.Code(types.CancellationReason{Code: aws.String("None")}))
}
