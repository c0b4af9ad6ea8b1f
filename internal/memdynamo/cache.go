package memdynamo

import "sync"

// maxCached bounds the memory of what was parsed. Programs use a handful of
// texts; one that writes values into its expressions must not grow the engine.
const maxCached = 4096

// cache remembers what was parsed; the errors of what does not parse are
// simply found again. Safe for concurrent use.
type cache[K comparable, V any] struct {
	mu     sync.RWMutex
	parsed map[K]*V
}

func (c *cache[K, V]) get(key K, parse func(K) (*V, error)) (*V, error) {
	c.mu.RLock()
	v := c.parsed[key]
	c.mu.RUnlock()
	if v != nil {
		return v, nil
	}
	v, err := parse(key)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parsed == nil || len(c.parsed) >= maxCached {
		c.parsed = make(map[K]*V)
	}
	c.parsed[key] = v
	return v, nil
}

type exprCache struct{ cache[exprKey, expr] }

type exprKey struct {
	kind exprKind
	text string
}

func (c *exprCache) parse(kind exprKind, text string) (*expr, error) {
	return c.get(exprKey{kind, text}, func(key exprKey) (*expr, error) { return parse(key.kind, key.text) })
}
