package testnet

import "testing"

// Ports that were given out are given to nobody else, though nobody listens on them.
func TestFreePortsAreGivenOnce(t *testing.T) {
	given := map[int]bool{}
	for range 40 {
		base, err := FreePorts(3)
		if err != nil {
			t.Fatal(err)
		}
		for p := base; p < base+3; p++ {
			if given[p] {
				t.Fatalf("port %d was given twice", p)
			}
			given[p] = true
		}
	}
	if _, err := FreePorts(portBlock + 1); err == nil {
		t.Error("more ports than a block has were found")
	}
}
