package main

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
)

func Example() {
	main()
	// Output:
	// {ID:p1 From:alice To:bob Amount:30}: paid
	// {ID:p1 From:alice To:bob Amount:30}: paid
	// {ID:p1 From:alice To:bob Amount:40}: refused: id "p1": was committed before with other keys or another payload
	// {ID:p2 From:alice To:bob Amount:500}: refused: not enough money
	// {alice 70} {bob 130}
}

func TestAnswer(t *testing.T) {
	require.Equal(t, "try again later, with the same ID", answer(&lockset.HeldError{Err: lockset.ErrWaited}))
	require.Equal(t, "try again later, with the same ID", answer(&unitofwork.InDoubtError{ID: "p1", Err: errors.New("cut")}))
	require.Equal(t, "failed: broken", answer(errors.New("broken")))
}
