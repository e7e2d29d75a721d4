// Package testenv gives tests a real Kubernetes API server.
//
// The server is this project's own standalone binary (bin/capi), started as a process of its own, so what tests
// see is what users run. There is one per test binary, shared by all its tests, started by the first test that asks:
//
//	var server env.Server
//
//	func TestMain(m *testing.M) { server.Main(m) }
//
//	func TestSomething(t *testing.T) {
//		e := server.Start(t, "config/core/crd", "config/bootstrap-kubeadm/crd")
//		ns := e.Namespace(t)
//		...
//	}
//
// Tests keep out of each other's way by working in a namespace of their own; that makes t.Parallel safe.
//
// What belongs here: starting and stopping the server, installing CustomResourceDefinitions, clients. What does not:
// starting managers, a vocabulary for journeys, builders of objects.
package testenv
