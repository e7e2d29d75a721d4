// Package extension calls runtime extensions: all that are registered for a hook (CallAll), the only one (CallOnly), or one by its name
// (Find, Target.Call). It also records on objects which hooks are still to be called for them.
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
//	the response has status Failure                         the same. The error has the message of the extension, which users see
//	                                                        in conditions. Controllers must not reconcile again just because the
//	                                                        message changed: it may be another one each time
//	the response is useless: the error of Target.Call's process  an error
//	the handler does not exist, or is for another hook      an error
//
// What does not belong here: the protocol (package wire), discovery (providers/core/internal/extensionconfig), what is called when
// (providers/core/internal/topology).
package extension
