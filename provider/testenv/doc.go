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
//		e := server.Start(t, "config/core/crd", "config/bootstrap-kubeadm/crd")
//		ns := e.Namespace(t)
//		...
//	}
//
// Each test uses its own namespace, which makes t.Parallel safe.
//
// What does not belong here:
// starting managers, a vocabulary for journeys, builders of objects.
package testenv
