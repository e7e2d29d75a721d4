package manager

import "testing"

func TestGoMemoryLimit(t *testing.T) {
	for _, test := range []struct {
		reason string
		env    map[string]string
		want   int64
	}{
		{"a tenth is left for memory that the runtime does not count", map[string]string{"CONTAINER_MEMORY_LIMIT": "1000000000"}, 900000000},
		{"outside of a container", nil, 0},
		{"GOMEMLIMIT of the user has precedence", map[string]string{"CONTAINER_MEMORY_LIMIT": "1000000000", "GOMEMLIMIT": "1GiB"}, 0},
		{"no limit", map[string]string{"CONTAINER_MEMORY_LIMIT": "0"}, 0},
		{"too little to respect", map[string]string{"CONTAINER_MEMORY_LIMIT": "1048576"}, 0},
		{"not a number", map[string]string{"CONTAINER_MEMORY_LIMIT": "1Gi"}, 0},
	} {
		t.Run(test.reason, func(t *testing.T) {
			if got := goMemoryLimit(func(name string) string { return test.env[name] }); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}
