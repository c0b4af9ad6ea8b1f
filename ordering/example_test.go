package ordering_test

import (
	"fmt"

	"github.com/holdall/holdall/ordering"
)

func ExampleJoin() {
	fmt.Println(ordering.Join("customer:42", "address:7"))
	fmt.Println(ordering.Join("file:/etc/hosts", "100%"))
	// Output:
	// customer:42/address:7
	// file:%2Fetc%2Fhosts/100%25
}

func ExampleNewPlan() {
	plan, _ := ordering.NewPlan("customer:9", "customer:42/address:7", "customer:42/account:1")
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
	keys, err := ordering.Canonical("customer:9", "customer:42/address:7", "customer:42", "customer:9")
	fmt.Println(keys, err)
	_, err = ordering.Canonical("customer:42/")
	fmt.Println(err)
	// Output:
	// [customer:42 customer:9] <nil>
	// key "customer:42/": segment 2 is empty
}
