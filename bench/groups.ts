import { coreGroups, updatedGroup } from './cases/core.ts'
import { heapGroup, leakGroup } from './cases/heap.ts'
import { honoGroups } from './cases/hono.ts'
import { overloadGroup } from './cases/overload.ts'
import { coldPartitionGroup, partitionGroups } from './cases/partition.ts'
import { otherPeerGroup, peerGroups } from './cases/peers.ts'
import { cancelGroup, deadlineGroup, depthGroup, otherQueueGroup, queueGroups } from './cases/queue.ts'
import { socketGroup } from './cases/socket.ts'
import { updateGroups } from './cases/update.ts'
import { updateLoadGroup } from './cases/update-load.ts'
import type { Group } from './engine.ts'

/** Everything that is measured; each group in a process of its own. */
export const GROUPS: readonly Group[] = [
  ...coreGroups,
  updatedGroup,
  ...partitionGroups,
  coldPartitionGroup,
  ...peerGroups,
  otherPeerGroup,
  ...queueGroups,
  otherQueueGroup,
  depthGroup,
  cancelGroup,
  deadlineGroup,
  ...honoGroups,
  ...updateGroups,
  heapGroup,
  leakGroup,
  socketGroup,
  overloadGroup,
  updateLoadGroup,
]
