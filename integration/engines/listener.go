package engines

// listener says whose sockets listen on a port.
type listener int

const (
	nobody  listener = iota // nobody listens, yet
	own                     // the process asked about, and nobody else
	foreign                 // somebody else, perhaps beside it
)
