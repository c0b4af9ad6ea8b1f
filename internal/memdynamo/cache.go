package memdynamo

import "sync"

// maxCached bounds the memory of parsed expressions. Programs use a handful;
// one that writes values into its expressions must not grow the engine.
const maxCached = 4096

// exprCache remembers parsed expressions by kind and text, and the errors of
// those that do not parse are simply found again. Safe for concurrent use.
type exprCache struct {
	mu     sync.RWMutex
	parsed map[exprKey]*expr
}

type exprKey struct {
	kind exprKind
	text string
}

func (c *exprCache) parse(kind exprKind, text string) (*expr, error) {
	key := exprKey{kind, text}
	c.mu.RLock()
	e := c.parsed[key]
	c.mu.RUnlock()
	if e != nil {
		return e, nil
	}
	e, err := parse(kind, text)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parsed == nil || len(c.parsed) >= maxCached {
		c.parsed = make(map[exprKey]*expr)
	}
	c.parsed[key] = e
	return e, nil
}
