// Package managers runs an API server and the managers of the product as separate processes, for benchmarks and fault
// injection.
//
// What belongs here: starting, stopping and killing these processes, and their prerequisites in the API server (CRDs, webhook
// configurations, ServiceAccounts with RBAC), and a server of runtime extensions for them. What does not: using them, which the
// benchmark (test/bench), the fault harness (test/fault) and the permission test (test/permission) do. Tests that need only an
// API server use sdk/testenv.
package managers
