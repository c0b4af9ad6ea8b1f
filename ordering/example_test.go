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
