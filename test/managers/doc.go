// Package managers runs an API server and the managers of the product as processes of their own, for programs that
// measure or disturb them.
//
// What belongs here: starting, stopping and killing these processes, and what an API server has to have before they
// start (definitions, webhook configurations, ServiceAccounts with their RBAC). What does not: what is done with them,
// which is for the benchmark (test/bench), the fault harness (test/fault) and the test of permissions (test/permission).
// Tests that need an API server alone use provider/testenv.
package managers
