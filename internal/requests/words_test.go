package requests_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/requests"
)

// The error of a request that was not answered says what every sending came to.
func TestTheWordsOfNoAnswer(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	conflict := coded("TransactionConflictException", "m")
	cause := errors.New("the work is over")
	for name, c := range map[string]struct {
		errs  []error // of the sendings, the last one again and again
		after time.Duration
		says  string
	}{
		"nothing sent":           {[]error{refused}, 0, "GetItem: nothing could be sent for 20s: DynamoDB cannot be connected to (dial tcp: connection refused): see whether this host reaches the endpoint"},
		"nothing sent in time":   {[]error{refused}, 50 * time.Millisecond, "GetItem: the work is over; nothing could be sent: DynamoDB cannot be connected to (dial tcp: connection refused): see whether this host reaches the endpoint"},
		"throttled":              {[]error{coded("ThrottlingException", "m")}, 0, "GetItem: DynamoDB was too busy for 20s: api error ThrottlingException: m"},
		"throttled in time":      {[]error{coded("ThrottlingException", "m")}, time.Second, "GetItem: the work is over; DynamoDB was too busy: api error ThrottlingException: m"},
		"conflicts":              {[]error{conflict}, 0, "GetItem: transactions of others were in the way for 20s: api error TransactionConflictException: m"},
		"a limit":                {[]error{coded("LimitExceededException", "m")}, 0, "GetItem: DynamoDB was too busy for 20s: a limit of the account is reached (api error LimitExceededException: m): wait until other operations on its tables are over, or have the limit raised"},
		"another Region":         {[]error{coded("ReplicatedWriteConflictException", "m")}, 0, "GetItem: transactions of others were in the way for 20s: a write in another Region is in the way (api error ReplicatedWriteConflictException: m): write each item in one Region at a time"},
		"expired credentials":    {[]error{coded("ExpiredTokenException", "m")}, 0, "GetItem: no request was accepted for 20s: the credentials have expired (api error ExpiredTokenException: m): renew them"},
		"silence":                {[]error{errHang}, 0, "GetItem: DynamoDB did not answer for too long; the last attempt was not answered within 1s"},
		"silence, ended":         {[]error{errHang}, 300 * time.Millisecond, "GetItem: the work is over; the last attempt was not answered within 300ms"},
		"a connection that ends": {[]error{errReset}, 0, "GetItem: DynamoDB did not answer for too long; the last attempt: connection reset by peer"},
		"silence, then busy":     {[]error{errHang, coded("ThrottlingException", "m")}, 0, "GetItem: DynamoDB did not answer for too long; the last attempt: api error ThrottlingException: m"},
		"unsent, then silence":   {[]error{refused, errHang}, 0, "GetItem: DynamoDB did not answer for too long; the last attempt was not answered within 1s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if c.after > 0 {
					var cancel func()
					ctx, cancel = context.WithTimeoutCause(ctx, c.after, cause)
					defer cancel()
				}
				s := &script{errs: c.errs}
				for len(s.errs) < 1000 {
					s.errs = append(s.errs, c.errs[len(c.errs)-1])
				}
				_, err := do(t, s, ctx)
				require.EqualError(t, err, strings.ReplaceAll(c.says, "api error ", ""))
			})
		})
	}
}

// A wrong clock is named with how wrong it is, by DynamoDB's words or by the time of its answer.
func TestTheWordsOfAWrongClock(t *testing.T) {
	for name, c := range map[string]struct {
		message string
		off     time.Duration // by the header
		says    string
	}{
		"behind, by words":  {"Signature expired: 20261126T010000Z is now earlier than 20261126T025500Z (20261126T030000Z - 5 min.)", 0, "this machine's clock is 2h0m0s behind AWS's ("},
		"ahead, by words":   {"Signature not yet current: 20261126T050000Z is still later than 20261126T030500Z (20261126T030000Z + 5 min.)", 0, "this machine's clock is 2h0m0s ahead of AWS's ("},
		"behind, by header": {"Signature expired", time.Hour, "this machine's clock is 1h0m0s behind AWS's ("},
		"ahead, by header":  {"Signature not yet current", -time.Hour, "this machine's clock is 1h0m0s ahead of AWS's ("},
		"nothing to see":    {"Signature expired", 0, "this machine's clock is wrong ("},
	} {
		t.Run(name, func(t *testing.T) {
			db := served(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header()["Date"] = nil
				if c.off != 0 {
					signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
					if err != nil {
						panic(err)
					}
					w.Header().Set("Date", signed.Add(c.off).Format(http.TimeFormat))
				}
				answer(400, `{"__type":"com.amazon.coral.service#InvalidSignatureException","message":"`+c.message+`"}`)(w, r)
			})
			caller := &requests.Caller{Attempt: 5 * time.Second, Patience: 30 * time.Millisecond}
			_, sent, err := requests.Do(t.Context(), caller, requests.Request{Op: "GetItem"}, &dynamodb.GetItemInput{TableName: aws.String("t"), Key: key("v")}, db.GetItem)
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, "): set it, and keep it right by NTP")
			require.NotContains(t, err.Error(), "secret")
			require.Zero(t, sent.Sendings, "none was accepted")
		})
	}
}

// What AWS says of a policy decides what is to be done.
func TestTheWordsOfADenial(t *testing.T) {
	const who = "User: arn:aws:iam::1:user/u is not authorized to perform: dynamodb:GetItem on resource: arn:aws:dynamodb:eu-west-1:1:table/a"
	const kms = "User: arn:aws:iam::1:user/u is not authorized to perform: kms:Decrypt on resource: arn:aws:kms:eu-west-1:1:key/k"
	for said, want := range map[string]string{
		who: "allow dynamodb:GetItem",
		who + " because no identity-based policy allows the dynamodb:GetItem action":       "allow dynamodb:GetItem in the identity-based policy",
		who + " because no permissions boundary allows the dynamodb:GetItem action":        "allow dynamodb:GetItem in the permissions boundary",
		who + " because no VPC endpoint policy allows the dynamodb:GetItem action":         "allow dynamodb:GetItem in the VPC endpoint policy",
		who + " because no service control policy allows the dynamodb:GetItem action":      "allow dynamodb:GetItem in the service control policy",
		who + " with an explicit deny in an identity-based policy":                         "change the identity-based policy that forbids dynamodb:GetItem: no other policy can allow it",
		who + " with an explicit deny in a VPC endpoint policy":                            "change the VPC endpoint policy that forbids dynamodb:GetItem: no other policy can allow it",
		who + " with an explicit deny in a resource control policy: arn:aws:organizations": "change the resource control policy that forbids dynamodb:GetItem: no other policy can allow it",
		"no": "allow what `holdall init --print iam` prints",
		kms:  "enable the table's KMS key, and allow kms:Decrypt",
		kms + " with an explicit deny in a service control policy":                                                          "enable the table's KMS key, and change the service control policy that forbids kms:Decrypt: no other policy can allow it",
		"The ciphertext refers to a customer master key that does not exist, or you are not allowed to access.":             "enable the table's KMS key, and allow this process to use it",
		"KMS key access denied error: KMS key is disabled, or a policy of it does not let this user have what it asks for.": "enable the table's KMS key, and allow this process to use it",
	} {
		err := &requests.TableError{Op: "Op", Tables: []string{"a"}, Err: coded("AccessDeniedException", said)}
		require.True(t, strings.HasSuffix(err.Error(), "): "+want), "%s\n%s", err, want)
	}
}

// A long key is cut in the middle, between two characters.
func TestShortened(t *testing.T) {
	short := strings.Repeat("k", 100)
	require.Equal(t, short, requests.Shortened(short))
	long := requests.Shortened("head" + strings.Repeat("ä", 1000) + "tail")
	require.LessOrEqual(t, len(long), 105)
	require.Equal(t, "head", long[:4])
	require.Contains(t, long, "ä…ä")
	require.True(t, strings.HasSuffix(long, "ätail"))
	require.NotContains(t, long, "\ufffd")
	require.NotEmpty(t, requests.Shortened(strings.Repeat("\x80", 1000)), "what is not UTF-8 has no place to cut")
}
