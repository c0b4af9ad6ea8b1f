package main

import (
	"errors"
	"slices"

	"github.com/aws/smithy-go"

	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
)

// hint is what to do next about an error, if that is more than the error itself says. Of the
// tables that units write the command knows nothing.
func (a *app) hint(err error) string {
	var table *lockset.TableError
	var none *lockset.NoAnswerError
	var api smithy.APIError
	for _, one := range requests.Joined(err) {
		if stuck, is := errors.AsType[*unitofwork.UnappliedError](one); is && stuck.Key != "" {
			return "; what to do: holdall mend -- " + stuck.Unit
		}
	}
	switch {
	case errors.As(err, &none) && none.Last == nil, requests.ConcernsAll(err): // which say themselves what to do
		return ""
	case errors.As(err, &none) && errors.As(none.Last, &api):
		return "; it was reached, and busy: holdall check says whether it throttles"
	case errors.As(err, &none):
		return "; see whether this host reaches it, and whether the Region is well: nothing is known of the tables"
	case errors.As(err, &table) && slices.ContainsFunc(table.Tables, func(name string) bool { return name == a.table || name == a.units }):
		return "; what to do: holdall check"
	}
	return ""
}
