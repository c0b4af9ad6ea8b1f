package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"slices"

	"github.com/holdall/holdall/integration/bank/archive"
	"github.com/holdall/holdall/integration/bank/office"
)

// opening makes the tables, that of the archive too, and opens the customers. An
// archive stays only if there are books for it.
type opening struct{ office.Options }

// Do implements [office.Command].
func (o *opening) Do(ctx context.Context, stdout, stderr io.Writer) (sound bool, err error) {
	o.Keep = true
	if o.Archive != "" {
		arch, unopened := archive.Open(ctx, archive.Config{Where: o.Archive, Prefix: o.Prefix})
		if unopened != nil {
			return false, unopened
		}
		defer func() {
			if sound {
				arch.Keep()
			}
			err = errors.Join(err, arch.Close(context.WithoutCancel(ctx)))
		}()
	}
	of, err := office.Open(ctx, &o.Options, stderr)
	if err != nil {
		return false, err
	}
	if err := of.OpenTown(ctx, office.NewTown(&o.Options), stdout); err != nil {
		return false, err
	}
	office.Say(stdout, "opened %d customers in the tables %s*\n", o.Customers, o.Prefix)
	return true, nil
}

// Flags implements [office.Command].
func (o *opening) Flags(fs *flag.FlagSet) {
	o.PlaceFlags(fs)
	o.StaffFlags(fs)
	o.TownFlags(fs, 40)
	o.StatementsFlag(fs)
}

// Complete implements [office.Command].
func (o *opening) Complete(given office.Given) {
	o.Options.Complete(given)
	o.NewPrefix(given)
}

// Check implements [office.Command].
func (o *opening) Check(given office.Given) []office.Check {
	return slices.Concat(o.CheckShared(), o.CheckStaff(given), o.CheckTown())
}
