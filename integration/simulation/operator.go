package simulation

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
)

// An operator takes keys from whoever holds them, alive or not, from a host of its own.
func (w *world) operate() {
	if !w.may(takenAway) {
		return
	}
	h := &host{w: w, name: operatorName, lease: w.plan.Lease}
	p := h.boot(operatorName, func(faults.Call) (string, faults.Fault) { return "", faults.Pass() })
	ctx := p.as("w0")
	i, err := inspect.New(p.net, p.operatorConfig(ctx))
	must(err)
	r := draw(w.plan.Seed, takenAway)
	for {
		wait := faults.UpTo(r, 20*w.plan.Mishaps)
		if w.settings.Only == takenAway {
			wait /= 20
		}
		time.Sleep(min(wait, w.until-time.Since(w.start)))
		if w.over() {
			return
		}
		key, unit := w.heldAt(r.Float64())
		if unit == "" {
			continue
		}
		w.strikes(takenAway)
		w.story.tell(p.name, "takes %s from unit %s", key, unit)
		err := i.Free(ctx, key, unit, inspect.Freeing{})
		if err != nil && !errors.As(err, new(*inspect.FreeError)) && !errors.Is(err, requests.ErrPatience) { // others write the rows all the time
			w.history.problem("the operator could not take %s from unit %s: %v", key, unit, err)
		}
	}
}

// operatorConfig is the process's, for one who works under a context. What its units have they
// leave to others.
func (p *process) operatorConfig(own context.Context) lockset.Config {
	cfg := p.locks.Config()
	draw := cfg.Rand
	cfg.Rand = func(context.Context) [16]byte {
		bytes := draw(own)
		p.h.w.history.loose(nonce(bytes))
		return bytes
	}
	return cfg
}

// heldAt returns one of the rows that are held and not prepared, and who has it; no unit if there
// is none. which is how far along in their order it is.
func (w *world) heldAt(which float64) (key ordering.Key, unit string) {
	items := w.db.Items(lockTable)
	items = slices.DeleteFunc(items, func(item map[string]types.AttributeValue) bool {
		return item[lockrow.AttrUnit] == nil || item[lockrow.AttrPrepared] != nil
	})
	if len(items) == 0 {
		return "", ""
	}
	slices.SortFunc(items, func(a, b map[string]types.AttributeValue) int {
		return strings.Compare(keyText(a), keyText(b))
	})
	item := items[int(which*float64(len(items)))]
	return ordering.Key(keyText(item)), text(item[lockrow.AttrUnit])
}

// isOperators reports whether a unit is an operator's, who takes keys from others and waits for
// no turn.
func (h *history) isOperators(nonce string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	u := h.units[nonce]
	return u != nil && u.p.name == operatorName
}

const operatorName = "operator"
