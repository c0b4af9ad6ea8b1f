package unitofwork_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
)

// DynamoDB does not say whose expression is wrong. The error names the record that has one, or all
// that do.
func TestWhoseExpressionIsWrong(t *testing.T) {
	update := func(id, expression string) func(*unitofwork.Unit) error {
		return func(u *unitofwork.Unit) error {
			return u.Update(accounts.Ref("1", id), unitofwork.Expression{Update: expression})
		}
	}
	check := func(id string, e unitofwork.Expression) func(*unitofwork.Unit) error {
		return func(u *unitofwork.Unit) error { return u.Check(accounts.Ref("1", id), e) }
	}
	for name, c := range map[string]struct {
		stage []func(*unitofwork.Unit) error
		says  []string
	}{
		"an update":        {[]func(*unitofwork.Unit) error{update("a", "FOO")}, []string{`table "accounts", record Customer="1" ID="a": `, "Syntax error"}},
		"an unknown value": {[]func(*unitofwork.Unit) error{update("a", "SET N = :n")}, []string{`record Customer="1" ID="a": `, ":n"}},
		"a check": {[]func(*unitofwork.Unit) error{check("b", unitofwork.Expression{Condition: "Balance ="})},
			[]string{`record Customer="1" ID="b": `, "Syntax error"}},
		"an unused value": {[]func(*unitofwork.Unit) error{check("b", unitofwork.Expression{Condition: "attribute_exists(ID)", Values: map[string]any{":x": 1}})},
			[]string{`record Customer="1" ID="b": `, ":x"}},
		"one of two": {[]func(*unitofwork.Unit) error{update("a", "REMOVE N"), check("b", unitofwork.Expression{Condition: "Balance ="})},
			[]string{`these have expressions: table "accounts", record Customer="1" ID="a"; table "accounts", record Customer="1" ID="b"`}},
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, b *bed, work unitofwork.Work) {
				err := b.client("c", nil).freely(t.Context(), work, func(_ context.Context, u *unitofwork.Unit) error {
					err := errors.Join(u.Insert(accounts.Of(account{Customer: "1", ID: "new"})), u.Replace(accounts.Of(account{Customer: "1", ID: "c"})))
					for _, stage := range c.stage {
						err = errors.Join(err, stage(u))
					}
					return err
				})
				for _, says := range c.says {
					require.ErrorContains(t, err, says)
				}
				require.Equal(t, len(c.stage) == 1, !strings.Contains(err.Error(), "one of the tables"), "%v", err)
				require.LessOrEqual(t, strings.Count(err.Error(), `ID="a"`), 1, "%v", err)
				require.Equal(t, lockset.FixCall, lockset.NextOf(err))
			})
		})
	}
}
