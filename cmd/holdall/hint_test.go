package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
)

func TestHint(t *testing.T) {
	a := &app{table: "locks", units: "units"}
	of := func(table string) error {
		return fmt.Errorf("a unit: %w", &lockset.TableError{Op: "GetItem", Tables: []string{table}, Err: &types.ResourceNotFoundException{}})
	}
	require.Contains(t, a.hint(of("locks")), "holdall check")
	require.Contains(t, a.hint(of("units")), "holdall check")
	require.Empty(t, a.hint(of("accounts")), "check does not look there")
	require.Contains(t, a.hint(&lockset.NoAnswerError{Last: errors.New("no route to host")}), "whether this host reaches it")
	require.Contains(t, a.hint(&lockset.NoAnswerError{Last: &types.ThrottlingException{}}), "busy")
	require.Empty(t, a.hint(&lockset.NoAnswerError{End: errors.New("interrupted")}), "nothing was sent")
	stuck := errors.Join(errors.New("another"), &unitofwork.UnappliedError{Unit: "-U", Key: "k", Err: of("locks")})
	require.Equal(t, "; what to do: holdall mend -- -U", a.hint(stuck))
	broken := &unitofwork.UnappliedError{Unit: "V", Err: errors.New("a row of its journal is missing")}
	require.Equal(t, "; what to do: holdall mend -- -U", a.hint(errors.Join(broken, stuck)), "mend can do nothing about a journal")
	require.Empty(t, a.hint(broken))
	require.Empty(t, a.hint(errors.New("another")))
}
