package engines

import (
	"context"
	"errors"
	"sync"
)

// Main runs a package's tests and then ends the engines they shared. It returns
// the code to exit with.
func Main(m interface{ Run() int }) int {
	shared.mu.Lock()
	shared.main = true
	shared.mu.Unlock()
	defer shared.stop()
	return m.Run()
}

// pool is the engines of one test binary, each started when first asked for.
// DynamoDB Local takes 2 s and 350 MB: one for every test would be most of the suite.
type pool struct {
	mu      sync.Mutex
	main    bool // Main runs the tests, so it will end what they start
	engines map[Kind]*entry
}

type entry struct {
	once   sync.Once
	server *Server
	err    error
}

var shared = pool{engines: map[Kind]*entry{}}

func (p *pool) get(kind Kind) (*Server, error) {
	p.mu.Lock()
	if !p.main {
		p.mu.Unlock()
		return nil, errors.New("engines: this package needs: func TestMain(m *testing.M) { os.Exit(engines.Main(m)) }")
	}
	e := p.engines[kind]
	if e == nil {
		e = &entry{}
		p.engines[kind] = e
	}
	p.mu.Unlock()
	// Not the first test's context: the engine outlives that test.
	e.once.Do(func() { e.server, e.err = Start(context.Background(), kind, "") })
	return e.server, e.err
}

func (p *pool) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.engines {
		if e.server != nil {
			e.server.Kill()
		}
	}
	postgres.stop()
}
