// Package hook sets and removes our pre-terminate hook on control plane Machines.
//
//	hook.go      the hook
//	orphaned.go  a controller that removes it from Machines whose control plane does not exist any more
//
// Every Machine that runs an etcd member has the hook from its creation on: its infrastructure is not deleted before its member
// has been removed from etcd, even if a user deletes the Machine while this manager is down (ADR 0012). When the hook of a
// control plane's own Machines is removed is decided in packages membership and deletion.
package hook
