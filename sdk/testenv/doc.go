// Package testenv gives tests a real Kubernetes API server.
//
// The server is this project's standalone binary (bin/capi), started as a separate process, so tests
// use what users run. There is one per test binary, shared by all its tests, and started by the first Start:
//
//	var server testenv.Server
//
//	func TestMain(m *testing.M) { server.Main(m) }
//
//	func TestSomething(t *testing.T) {
//		e := server.Start(t, "providers/core/config/crd", "providers/bootstrap-kubeadm/config/crd")
//		ns := e.Namespace(t)
//		...
//	}
//
// Each test uses its own namespace, which makes t.Parallel safe. Env.Run runs controllers there, and counts their writes.
//
// Most tests of a controller need no real API server: package fakeapi has one in memory, with stale caches and failing requests. Package
// object builds objects for both.
//
// What does not belong here: a vocabulary for journeys.
package testenv
