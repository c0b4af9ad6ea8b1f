package otelholdall_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/otelholdall"
	"github.com/holdall/holdall/unitofwork"
)

// What goes wrong is said with keys, IDs and whatever a function puts into its errors: spans have it only if
// that was asked for.
func TestErrorsNameNothingInSpans(t *testing.T) {
	const key, id, content = "account:secret", "id-secret", "balance of secret"
	fail := func(t *testing.T, b *bed) {
		set, err := b.Locks().Acquire(t.Context(), []ordering.Key{key})
		require.NoError(t, err)
		other := b.open(b.db, "another", b.hooks)
		_, err = other.Locks().Acquire(t.Context(), []ordering.Key{key}, func(o *lockset.Options) { o.Wait = lockset.For(0) })
		require.ErrorContains(t, err, key)
		time.AfterFunc(time.Second, func() { _ = set.Release(context.Background()) })
		work := unitofwork.Work{ID: id, Payload: []byte("1")}
		require.NoError(t, other.Do(t.Context(), work, func(ctx context.Context, u *unitofwork.Unit) error { return deposit(ctx, u, "secret") }))
		work.Payload = []byte("2")
		require.ErrorContains(t, other.Do(t.Context(), work, func(ctx context.Context, u *unitofwork.Unit) error { return deposit(ctx, u, "secret") }), id)
		require.Error(t, other.Do(t.Context(), unitofwork.Work{}, func(context.Context, *unitofwork.Unit) error { return errors.New(content) }))
		_, err = b.Locks().Acquire(t.Context(), []ordering.Key{key})
		require.NoError(t, err)
		b.net.Crash()
		time.Sleep(2 * lease)
	}
	said := func(b *bed) (all string) {
		for _, s := range b.spans.GetSpans() {
			all += s.Name + "\n" + s.Status.Description + "\n"
			for _, a := range s.Attributes {
				all += string(a.Key) + "=" + a.Value.String() + "\n"
			}
			for _, e := range s.Events {
				all += e.Name + "\n"
				for _, a := range e.Attributes {
					all += string(a.Key) + "=" + a.Value.String() + "\n"
				}
			}
		}
		return all
	}
	inBed(t, func(t *testing.T, b *bed) {
		fail(t, b)
		require.NotContains(t, said(b), "secret")
		require.Contains(t, said(b), "holdall.reason=unitofwork.")
		require.NotEmpty(t, b.all("holdall.lost"))
	})
	inBed(t, func(t *testing.T, b *bed) {
		fail(t, b)
		for _, part := range []string{key, id, content} {
			require.Contains(t, said(b), part)
		}
	}, func(o *otelholdall.Options) { o.Keys = true })
}
