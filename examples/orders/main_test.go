package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/internal/local"
	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// shop has ten pens.
func shop(t *testing.T) (post func(key, body string) *httptest.ResponseRecorder, units *unitofwork.Client) {
	t.Helper()
	units = local.Units(orders.Name, stock.Name)
	pens := stock.Of(item{"pen", 10})
	local.Replace(units, pens)
	return func(key, body string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders", strings.NewReader(body))
		r.Header.Set("Idempotency-Key", key)
		service{units}.ServeHTTP(w, r)
		return w
	}, units
}

func TestOrders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		post, _ := shop(t)
		first := post("k1", `{"Item":"pen","Quantity":2}`)
		require.Equal(t, http.StatusCreated, first.Code, first.Body)
		require.JSONEq(t, `{"ID":"k1","Item":"pen","Quantity":2,"Left":8}`, first.Body.String())
		require.Equal(t, http.StatusCreated, post("k2", `{"Item":"pen","Quantity":3}`).Code)

		again := post("k1", `{ "Quantity": 2, "Item": "pen" }`)
		require.Equal(t, first.Code, again.Code)
		require.Equal(t, first.Body.String(), again.Body.String(), "the same answer, though there are fewer left now")

		require.Equal(t, http.StatusUnprocessableEntity, post("k1", `{"Item":"pen","Quantity":3}`).Code)
		require.Equal(t, http.StatusUnprocessableEntity, post("k1", `{"Item":"cup","Quantity":2}`).Code)
		require.Equal(t, http.StatusNotFound, post("k3", `{"Item":"pen","Quantity":6}`).Code)
		require.Equal(t, http.StatusNotFound, post("k4", `{"Item":"cup","Quantity":1}`).Code)
		require.Equal(t, http.StatusCreated, post("k3", `{"Item":"pen","Quantity":5}`).Code, "what was refused was not placed")
		for _, wrong := range []string{"", "{", `{"Item":"pen"}`, `{"Quantity":1}`, `{"Item":"pen","Quantity":-1}`} {
			require.Equal(t, http.StatusBadRequest, post("k5", wrong).Code, wrong)
		}
		require.Equal(t, http.StatusBadRequest, post("", `{"Item":"pen","Quantity":1}`).Code)
	})
}

// One order, sent many times at once, is placed once.
func TestOneOrderAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		post, units := shop(t)
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				w := post("k1", `{"Item":"pen","Quantity":2}`)
				require.JSONEq(t, `{"ID":"k1","Item":"pen","Quantity":2,"Left":8}`, w.Body.String())
			})
		}
		all.Wait()
		pens := stock.Ref("pen")
		require.NoError(t, units.Read(t.Context(), pens))
		require.Equal(t, 8, pens.T.Left)
	})
}

func TestTryAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		post, units := shop(t)
		err := units.Do(t.Context(), unitofwork.Work{Lock: true, Keys: []ordering.Key{"item:pen"}}, func(context.Context, *unitofwork.Unit) error {
			w := post("k1", `{"Item":"pen","Quantity":2}`)
			require.Equal(t, http.StatusConflict, w.Code, w.Body)
			require.NotEmpty(t, w.Header().Get("Retry-After"))
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, http.StatusCreated, post("k1", `{"Item":"pen","Quantity":2}`).Code)
	})
	for err, status := range map[error]int{
		&lockset.NoAnswerError{Last: errors.New("cut")}:  http.StatusServiceUnavailable,
		&unitofwork.InDoubtError{Err: errors.New("cut")}: http.StatusServiceUnavailable,
		&heartbeat.LostError{}:                           http.StatusServiceUnavailable,
	} {
		w := httptest.NewRecorder()
		refuse(w, err)
		require.Equal(t, status, w.Code, err)
		require.NotEmpty(t, w.Header().Get("Retry-After"))
	}
	w := httptest.NewRecorder()
	refuse(w, errors.New("broken"))
	require.Equal(t, http.StatusInternalServerError, w.Code)
	require.Empty(t, w.Header().Get("Retry-After"))
}
