package managers

import "testing"

// Managers that start at the same time listen on ports of their own: 2,000 random ports of 10,000 would have many pairs.
func TestFreePortsDiffer(t *testing.T) {
	seen := map[int]bool{}
	for range 2000 {
		port, err := FreePort()
		if err != nil {
			t.Fatal(err)
		}
		if seen[port] {
			t.Fatalf("port %d is returned twice", port)
		}
		seen[port] = true
	}
}
