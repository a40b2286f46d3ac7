// A healthy library that is no plugin.
extern "C" __attribute__((visibility("default"))) int an_ordinary_function() { return 42; }
