package holdalltest

import (
	"fmt"
	"testing"
)

// Failures is what Run reports, by what happened.
func (c Check) Failures(t *testing.T) map[string]string {
	failed := map[string]string{}
	sent, err := c.try(t, disturbance{})
	if err != nil {
		return map[string]string{"no fault": err.Error()}
	}
	for _, request := range sent {
		for _, d := range c.disturbances(request) {
			if _, err := c.try(t, d); err != nil {
				failed[fmt.Sprintf("%s at %s", d.name, request.Op)] = err.Error()
			}
		}
	}
	return failed
}
