import { disabledGroup, oneScopeGroup, rateGroup, refusalGroup, threeScopesGroup, updatedGroup } from './cases/core.ts'
import { heapGroup, leakGroup } from './cases/heap.ts'
import { honoGroup, honoPeerGroup } from './cases/hono.ts'
import { overloadGroup } from './cases/overload.ts'
import { coldPartitionGroup, partitionGroup } from './cases/partition.ts'
import { otherPeerGroup, peerGroup } from './cases/peers.ts'
import { cancelGroup, deadlineGroup, depthGroup, otherQueueGroup, queueGroups } from './cases/queue.ts'
import { socketGroup } from './cases/socket.ts'
import { updateGroups } from './cases/update.ts'
import { updateLoadGroup } from './cases/update-load.ts'
import type { Group } from './engine.ts'

/** Everything that is measured; each group in a process of its own. */
export const GROUPS: readonly Group[] = [
  disabledGroup,
  oneScopeGroup,
  threeScopesGroup,
  updatedGroup,
  rateGroup,
  refusalGroup,
  partitionGroup,
  coldPartitionGroup,
  peerGroup,
  otherPeerGroup,
  ...queueGroups,
  otherQueueGroup,
  depthGroup,
  cancelGroup,
  deadlineGroup,
  honoGroup,
  honoPeerGroup,
  ...updateGroups,
  heapGroup,
  leakGroup,
  socketGroup,
  overloadGroup,
  updateLoadGroup,
]
