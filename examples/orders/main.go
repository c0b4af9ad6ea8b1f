// Command orders is an HTTP service whose requests may be repeated: each gets the same answer again.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/holdall/holdall/examples/internal/local"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

type order struct {
	ID, Item       string
	Quantity, Left int // Left in stock, afterwards
}

type item struct {
	ID   string
	Left int
}

var (
	orders     = unitofwork.Table[order]{Name: "orders", PartitionKey: "ID", Guard: func(o *order) ordering.Key { return ordering.Join("order:" + o.ID) }}
	stock      = unitofwork.Table[item]{Name: "stock", PartitionKey: "ID", Guard: func(i *item) ordering.Key { return ordering.Join("item:" + i.ID) }}
	errSoldOut = errors.New("not enough in stock") // today: an order that was refused may be sent again
)

// place takes an order from stock, once, and returns it as it was placed: now, or before.
func place(ctx context.Context, units *unitofwork.Client, o order) (order, error) {
	placed, of := orders.Of(o), stock.Ref(o.Item)
	what := fmt.Appendf(nil, "%d of %q", o.Quantity, o.Item)
	work := unitofwork.Work{ID: "order:" + o.ID, Payload: what, Wait: lockset.For(2 * time.Second), Purpose: "order"}
	err := units.Do(ctx, work, func(ctx context.Context, u *unitofwork.Unit) error {
		if err := u.Get(ctx, of); err != nil {
			return err
		}
		if of.T.Left -= o.Quantity; of.T.Left < 0 {
			return errSoldOut
		}
		placed.T.Left = of.T.Left
		return errors.Join(u.Insert(placed), u.Put(of))
	})
	if err == nil {
		err = units.Read(ctx, placed) // Do calls nothing if it was placed before
	}
	return placed.T, err
}

type service struct{ units *unitofwork.Client }

func (s service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var o order
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10)).Decode(&o)
	o.ID, o.Left = r.Header.Get("Idempotency-Key"), 0
	if err != nil || o.ID == "" || len(o.ID) > 200 || o.Item == "" || o.Quantity < 1 {
		http.Error(w, "an order has an Idempotency-Key, an Item and a Quantity", http.StatusBadRequest)
		return
	}
	if o, err = place(r.Context(), s.units, o); err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(o) // a client that gets no answer sends the request again
}

// refuse says what the caller may do. To send an order again is safe, also when nobody knows if it was placed.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError // the call, a table or a permission is wrong
	switch next := lockset.NextOf(err); {
	case errors.Is(err, errSoldOut):
		status = http.StatusNotFound
	case errors.As(err, new(*unitofwork.IDError)): // another order had this key
		status = http.StatusUnprocessableEntity
	case next == lockset.TryLater, next == lockset.StartOver, next == lockset.AskLater:
		w.Header().Set("Retry-After", "2")
		status = http.StatusServiceUnavailable
		if errors.As(err, new(*lockset.HeldError)) { // others want the same item
			status = http.StatusConflict
		}
	}
	http.Error(w, err.Error(), status)
}

func main() {
	units := local.Units(orders.Name, stock.Name) // in memory; of a *dynamodb.Client: open, in examples/transfer
	local.Replace(units, stock.Of(item{"pen", 10}))
	http.Handle("POST /orders", service{units})
	fmt.Println(`curl -i -H 'Idempotency-Key: 1' -d '{"Item":"pen","Quantity":2}' http://localhost:8080/orders`)
	log.Fatal((&http.Server{Addr: "localhost:8080", ReadHeaderTimeout: time.Second}).ListenAndServe())
}
