#pragma once
// SHARDLAB_EXPORT marks what libshardlab.so shows to plugins; everything else is hidden, so that
// two plugins with the same class name never meet.
//
//   class SHARDLAB_EXPORT Strategy { ... };

#define SHARDLAB_EXPORT __attribute__((visibility("default")))
