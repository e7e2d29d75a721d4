package manager

import "strconv"

// memoryLimitVariable has the memory limit of the container, in bytes. Manifests set it with a resourceFieldRef.
const memoryLimitVariable = "CONTAINER_MEMORY_LIMIT"

// minMemoryLimit is the lowest memory limit that is respected. With less, managers would only collect garbage.
const minMemoryLimit = 16 << 20

// goMemoryLimit returns the memory limit for the Go runtime, in bytes: the runtime collects garbage more often when it is near,
// instead of being killed at the limit of the container. The rest, a tenth, is for memory that the runtime does not count, such
// as buffers of the kernel. It returns 0, no limit, if the container has none, or if GOMEMLIMIT is set.
func goMemoryLimit(getenv func(string) string) int64 {
	limit, err := strconv.ParseInt(getenv(memoryLimitVariable), 10, 64)
	if err != nil || limit < minMemoryLimit || getenv("GOMEMLIMIT") != "" {
		return 0
	}
	return limit / 10 * 9
}
