package explain

// EachTranscript is eachTranscript, for tests of commands.
var EachTranscript = eachTranscript
