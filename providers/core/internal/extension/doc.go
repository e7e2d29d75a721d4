// Package extension calls runtime extensions: all that are registered for a hook (CallAll), or one by its name (Find, Target.Call).
//
// There is no registry besides the ExtensionConfigs in the cache: spec has how to reach a server, status.handlers what it serves. So
// nothing has to be rebuilt after a restart or a change of the leader, a dead server does not keep a manager from starting, and all
// handlers of a server change at once, with one write of the status.
//
// An ExtensionConfig that has not been discovered yet could have a handler for any hook. Until the first attempt, calls for the namespaces
// that it selects fail with NotReadyError, without calling anything; callers wait for one of the Changes.
//
// Failures, by the policy of the handler:
//
//	the server is unreachable, or its response is invalid   Fail: an error. Ignore: logged, and treated as an empty success
//	the response has status Failure                         an error. Its message is only logged: if it changes with each call, the
//	                                                        condition would, too, and each change would lead to another call
//	the handler does not exist, or is for another hook      an error
//
// What does not belong here: the protocol (package wire), discovery (providers/core/internal/extensionconfig), what is called when
// (providers/core/internal/topology).
package extension
