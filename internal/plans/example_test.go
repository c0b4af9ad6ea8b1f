package plans_test

import (
	"fmt"

	"github.com/holdall/holdall/internal/plans"
)

func ExampleNew() {
	plan, _ := plans.New("customer:9", "customer:42/address:7", "customer:42/account:1")
	for _, step := range plan {
		fmt.Println(step.Key, "with intents on", step.Intents)
	}
	// Output:
	// customer:42/account:1 with intents on [customer:42]
	// customer:42/address:7 with intents on []
	// customer:9 with intents on []
}

// A lock on a key covers everything below it, so a set names each family once.
func ExampleCanonical() {
	keys, err := plans.Canonical("customer:9", "customer:42/address:7", "customer:42", "customer:9")
	fmt.Println(keys, err)
	_, err = plans.Canonical("customer:42/")
	fmt.Println(err)
	// Output:
	// [customer:42 customer:9] <nil>
	// key "customer:42/": segment 2 is empty
}
