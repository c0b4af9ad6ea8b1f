package record

// LineOf is what an event is written as.
func LineOf(e *Event) []byte { return lineOf(e) }
