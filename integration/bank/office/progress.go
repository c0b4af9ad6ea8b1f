package office

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/holdall/holdall/integration/bank/staff"
)

// showProgress shows how far the work is, until the function it returns is
// called: a bar where there is a terminal, else a line every few seconds.
func showProgress(w io.Writer, what string, jobs int, t *staff.Tally) (stop func()) {
	bar := isTerminal(w)
	every := 3 * time.Second
	if bar {
		every = 100 * time.Millisecond
	}
	start := time.Now()
	end := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
			case <-end:
				if bar {
					Say(w, "\r\x1b[K") // the report says it all
				}
				return
			}
			line := progressLine(what, t.Over.Load(), jobs, time.Since(start), bar)
			if takenOver := t.TakenOver.Load(); takenOver > 0 {
				line += fmt.Sprintf(", %d locks taken over", takenOver)
			}
			if bar {
				Say(w, "\r%s\x1b[K", line)
			} else {
				Say(w, "%s\n", line)
			}
		}
	})
	return func() {
		close(end)
		ended.Wait()
	}
}

func progressLine(what string, over int64, jobs int, since time.Duration, bar bool) string {
	rate := fmt.Sprintf("%.0f/s", perSecond(over, since))
	if jobs == 0 {
		return fmt.Sprintf("%s: %d, %s", what, over, rate)
	}
	line := fmt.Sprintf("%d of %d, %s", over, jobs, rate)
	if bar {
		const width = 30
		full := min(int(over)*width/jobs, width)
		line = "[" + strings.Repeat("=", full) + strings.Repeat(" ", width-full) + "] " + line
	}
	return what + ": " + line
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
