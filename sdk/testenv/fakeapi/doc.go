// Package fakeapi runs controllers in a test without a manager, on an API server in memory: their requests are recorded, and can fail;
// their cache can be stale, and their clock stands still.
//
//	s := fakeapi.New(t, fakeapi.Options{Kinds: []func(*runtime.Scheme) error{hostsv1.AddToScheme}, Objects: []client.Object{machine, host}})
//	c := &Controller{Clients: s.ForController()}
//	_, err := c.Declared().Runner(c.Clients).Reconcile(t.Context(), request)
//	// s.Writes is now "patch HostMachine m", "patch HostMachine/status m"
//
// The methods of a Server are those of users and of other controllers: up to date, not recorded, never failing. Only the clients of
// ForController go through what the test has set up:
//
//	s.Cache.Freeze(&clusterv1.MachineList{}) // from now on, the controller reads old Machines, except with step.Clients.Live
//	s.After = func(r fakeapi.Request, err error) error { return errors.New("killed") } // the request was executed, the response lost
//
// Over does the same on a real API server (package testenv), for what a fake does not do: validation, defaults, server-side apply.
// Workload is a workload cluster for controllers that connect to one.
//
// What does not belong here: builders of objects (package object), running managers (testenv.Env.Run).
package fakeapi
