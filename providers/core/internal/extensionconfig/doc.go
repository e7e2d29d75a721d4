// Package extensionconfig reconciles ExtensionConfigs: it asks their servers which extensions they have.
//
// The steps, in order, and what each guarantees:
//
//	ca        spec has the CA certificates of the Secret in the annotation inject-ca-from-secret, in the API server
//	discover  status has the handlers of the server, and the condition Discovered; after a failure, the handlers stay as they were
//
// Servers are asked when spec, labels or annotations of their ExtensionConfig or the Secret change, after a failure with backoff, and with
// each resync (--sync-period). There is nothing to do when an ExtensionConfig is deleted: its handlers are no longer called.
//
// Each server is asked by itself: one that is dead, slow or hostile costs a worker ten seconds per attempt, and changes only its own
// ExtensionConfig.
//
// What does not belong here: calling the extensions (providers/internal/extension), validation of spec
// (providers/core/internal/webhook).
package extensionconfig
